# Part of run: train --mpi, with a share of the examples at each rank. The model is that of one process, byte by byte, unless the
# kernel adds up features of vectors, whose order depends on the shares.
learn=(train --solver folded -k "$kernel")
grep -v '^$' data.jsonl | head -n 3 >three.jsonl
split -n l/3 data.jsonl part.
gzip -k part.ab
for ranks in 1 2 4; do
    check "train, $ranks ranks" same $ranks out.model "${learn[@]}" -o out.model data.jsonl
done
check "train: one against one" same 3 out.model "${learn[@]}" --multiclass ovo -o out.model data.jsonl
check "train: probabilities" same 2 out.model "${learn[@]}" --probability -o out.model few.jsonl
check "train: svr" same 3 out.model train -l svr --solver folded -k "$kernel" -o out.model numbers.jsonl
check "train: sequences" same 3 out.model train --solver folded -k 'norm(seq(words, n=3))' -o out.model few.jsonl
check "train: leaves" same 3 out.model train --solver folded -k 'sst(tree, lambda=0.4, bow=0.5)' -o out.model few.jsonl
check "train: several files" same 2 out.model "${learn[@]}" -o out.model part.aa part.ab part.ac
check "train: a compressed file among them" same 3 out.model "${learn[@]}" -o out.model part.aa part.ab.gz part.ac
./espalier "${learn[@]}" -q -o one.file data.jsonl
check "train: files are one behind the other" cmp many.file one.file
check "train: empty shares" same 4 out.model "${learn[@]}" -o out.model three.jsonl
check "train: an empty file" same 2 out.model "${learn[@]}" -o out.model empty.jsonl few.jsonl

# The objective is that of one process, and the gap is certified.
objective() { ./espalier info "$1" | awk -F '\t' '$1 == "primal objective" {print $2}'; }
close_to() # RANKS KERNEL DATA: learned by ranks and by one process
{
    ./espalier train -q --solver folded -k "$2" -o one.model "$3" && "${mpi[@]}" -n "$1" ./espalier train --mpi -k "$2" -o many.model "$3" || return 1
    echo "$(objective one.model) $(objective many.model)" | tee both
    awk '{exit !($1 > 0 && ($1 - $2) ^ 2 < 1e-16 * $1 ^ 2)}' both
}
check "train: words" close_to 3 "$kernel + 0.5*linear(words)" data.jsonl
rows_agree() # the solver that needs all rows finds the same labels and, within the tolerance, the same scores
{
    ./espalier train -q --solver rows -k "$kernel" -C 2 -o one.model few.jsonl && "${mpi[@]}" -n 3 ./espalier train --mpi -q -k "$kernel" -C 2 -o many.model few.jsonl || return 1
    paste <(./espalier predict -q --all-scores one.model data.jsonl) <(./espalier predict -q --all-scores many.model data.jsonl) >both
    awk -F '\t' '{for (i = 2; i <= NF / 2; i++) {d = $i - $(i + NF / 2); if (d * d > 1e-4) exit 1}} END {exit NR != 300 || NF < 6}' both
}
check "train: as by rows" rows_agree
shows_work()
{
    "${mpi[@]}" -n 2 ./espalier "${learn[@]}" --mpi -v -o out.model data.jsonl 2>said
    cat said
    grep -q "rank 1 on $(hostname): [0-9]* examples; [0-9]* scores and [0-9]* kernel values in .* held; gave .* MB, took" said && grep -q 'relative gap' said
}
check "train: who does what" shows_work
rm -f out.model

# ---- what goes wrong
check "train: other options" all_say 2 2 "'-C 2', not '-C 1'" two "${learn[@]}" --mpi -C 1 -o out.model data.jsonl / "${learn[@]}" --mpi -C 2 -o out.model data.jsonl
cp data.jsonl here
sed 's/"tree": "\([^"]*\)"/"other": "\1"/' data.jsonl >there/data.jsonl
check "train: other columns" all_say 2 2 "rank 1 on $(hostname) has another column than rank 0" apart train --mpi --solver folded -k 'norm(sst)' -o ../out.model data.jsonl
sed 's/"y": "[^"]*", //' data.jsonl >there/data.jsonl
check "train: no targets at one rank" all_say 2 2 "the examples of rank 1 on $(hostname) have no targets" apart "${learn[@]}" --mpi -o ../out.model data.jsonl
sed '250s/.*/{"y": 1, "tree": "(S"}/' data.jsonl >wrong.jsonl
check "train: a bad line" all_say 3 1 "wrong.jsonl:250:" many 3 "${learn[@]}" --mpi -o out.model wrong.jsonl
check "train: no examples" all_say 2 1 "there are no examples" many 2 "${learn[@]}" --mpi -o out.model empty.jsonl
check "train: one class" all_say 2 1 "a classifier needs two classes" many 2 "${learn[@]}" --mpi -o out.model single.jsonl
check "train: rows" all_say 2 2 "only the solver folded" many 2 train --mpi --solver rows -k "$kernel" -o out.model data.jsonl
check "train: a kernel that does not fold" all_say 2 2 "do not fold" many 2 train --mpi -k 'rbf(words)' -o out.model data.jsonl
check "train: gp" all_say 2 2 "does not learn over several ranks" many 2 train -l gp --mpi -k "1*$kernel" -o out.model numbers.jsonl
check "train: perceptron" says 2 "in one process" many 1 train -l perceptron --mpi -k "$kernel" -o out.model data.jsonl
check "train: the model on a full disk" all_say 2 1 "rank 0 on $(hostname) failed: /dev/full: No space left" many 2 "${learn[@]}" --mpi -o /dev/full data.jsonl
check "train: nothing is left" sh -c '! ls -A | grep -e "\.tmp$" -e "^out\.model"'
if unshare -m sh -c 'mount -t tmpfs -o size=8k none here' 2>/dev/null; then
    tiny() { unshare -m sh -c 'mount -t tmpfs -o size=8k none here && "$@"; code=$?; ls -A here; exit $code' tiny "$@"; }
    check "train: the checkpoint on a full disk" all_say 2 1 "No space left" tiny "${mpi[@]}" -n 2 ./espalier "${learn[@]}" --mpi --checkpoint here/check -o out.model more.jsonl
else
    skip "train: the checkpoint on a full disk: file systems cannot be mounted here"
fi

# ---- a rank dies, and others go on
./espalier "${learn[@]}" -q -C 10 -o one.model more.jsonl
goes_on() # RANK RANKS: rank RANK of 3 is killed, then RANKS continue
{
    rm -f pid.* check out.model
    "${mpi[@]}" -n 3 ./noted "${learn[@]}" -C 10 --mpi --checkpoint check -o out.model more.jsonl >said 2>&1 &
    local job=$! i
    for i in $(seq 400); do
        [ -s check ] && break
        sleep 0.05
    done
    kill -9 "$(cat "pid.$1")"
    wait $job
    local code=$?
    cat said
    [ $code != 0 ] && [ -s check ] && [ ! -e out.model ] || return 1
    if [ "$2" = 0 ]; then ./espalier "${learn[@]}" -v -C 10 --checkpoint check -o out.model more.jsonl 2>said
    else "${mpi[@]}" -n "$2" ./espalier "${learn[@]}" -v -C 10 --mpi --checkpoint check -o out.model more.jsonl 2>said; fi || return 1
    cat said
    ! grep -q 'pass 1: 4096 of 6000' said && [ ! -e check ] && cmp out.model one.model
}
check "rank 1 is killed: 4 ranks go on" goes_on 1 4
check "rank 0 is killed: 2 ranks go on" goes_on 0 2
check "rank 2 is killed: one process goes on" goes_on 2 0
foreign() # a checkpoint of other data is refused and stays
{
    rm -f check
    ./espalier "${learn[@]}" -q -C 10 --checkpoint check -o out.model more.jsonl &
    local job=$! i
    for i in $(seq 400); do
        [ -s check ] && break
        sleep 0.05
    done
    kill -9 $job
    wait $job
    cp check before
    all_say 2 2 "is the checkpoint of another run" many 2 "${learn[@]}" -C 10 --mpi --checkpoint check -o out.model data.jsonl && cmp check before
}
check "a checkpoint of other data" foreign
rm -f out.model check
