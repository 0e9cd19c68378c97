#!/bin/sh
# The tables of bench/results/folded.md: support vector machines without rows of the Gram matrix against those with rows. See
# bench/run. LARGEST: the most examples (default 100000; all examples of EWT are 1690280, and rows take long beyond 300000).
# BUDGET: seconds after which no further round of a row of a table begins (default 10).
program=espalier_bench_folded
. "$(dirname "$0")/common.sh"
out=bench/results/folded.md
largest=${LARGEST:-100000}
budget=${BUDGET:-10}
tree='norm(sst(tree, lambda=0.4))'
sum='norm(sst(tree, lambda=0.4)) + norm(poly(x, degree=3))'
asked=4096

# Examples to learn from, and behind them those that scores are asked of.
if [ -f "$data/srl/ewt.srl.gz" ]; then
    source='boundary examples of the English Web Treebank by `espalier srl`, the first n of the training documents'
    "$build/espalier" srl -q --limit "$largest" --documents "$data/srl/ewt.train.docs" "$data/srl/ewt.srl.gz" -o "$work/all.jsonl"
    "$build/espalier" srl -q --limit "$asked" --documents "$data/srl/ewt.dev.docs" "$data/srl/ewt.srl.gz" -o "$work/asked.jsonl"
    kernels="$tree
$sum"
else
    echo "bench: no $data/srl/ewt.srl.gz; sampled questions stand in" >&2
    [ "$largest" -le 3000 ] || largest=3000 # there are six classes, and most examples are support vectors
    source='questions sampled from examples/questions.grammar'
    "$build/espalier" sample --grammar examples/questions.grammar --count $((largest + asked)) -o "$work/both.jsonl"
    head -n "$largest" "$work/both.jsonl" >"$work/all.jsonl"
    tail -n "$asked" "$work/both.jsonl" >"$work/asked.jsonl"
    rm "$work/both.jsonl"
    kernels=$tree
fi
largest=$(wc -l <"$work/all.jsonl")

sizes() { # the least one
    for n in 1000 3000 10000 30000 100000 300000 1000000 3000000; do
        if [ "$n" -ge "$1" ] && [ "$n" -le "$largest" ]; then echo "$n"; fi
    done
}

part() { head -n "$1" "$work/all.jsonl" >"$work/part.jsonl"; }

# Where the ratio, field 7 of lines by number of examples, passes 1 for good: by a straight line between logarithms.
crossing() {
    awk -F '\t' '
        NR > 1 && last < 1 && $7 >= 1 { at = exp(log(n) + (log($1) - log(n)) * -log(last) / (log($7) - log(last))); there = 1 }
        $7 < 1 { there = 0 }
        NR == 1 && $7 >= 1 { there = 1 }
        { n = $1; last = $7 }
        END {
            unit = at ? 10 ^ (int(log(at) / log(10)) - 1) : 1
            if (!there) print "`rows` is faster up to " n " examples."
            else if (at) printf "`folded` is faster from about %d examples on.\n", int(at / unit + 0.5) * unit
            else print "`folded` is faster at all of these sizes."
        }' "$1"
}

comparison="examples${tab}classes${tab}rows s${tab}rows, peak MB${tab}folded s${tab}folded, peak MB${tab}rows / folded${tab}least${tab}most${tab}support vectors, rows${tab}folded${tab}rounds"
note() { echo "bench: folded: $*" >&2; }

{
    echo "# Support vector machines without rows"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Times are medians of up to $repeats alternating runs," \
        "fewer where they take long; a ratio is the median of the ratios within a round. Each run is a process with one thread. The time is that" \
        'of learning, without reading; the peak of memory is that of the process, with reading. `rows` may keep rows in half of the memory of the machine.'
    echo "Data: $source. C = 1."
    echo "$kernels" | while read -r kernel; do
        echo
        echo "## Rows against folded: \`$kernel\`"
        echo
        table "$comparison"
        : >"$work/lines"
        for n in $(sizes 1); do
            note "$n examples, $kernel"
            part "$n"
            "$bench" compare "$work/part.jsonl" y "$kernel" 1 "$repeats" "$budget" | tee -a "$work/lines" >"$work/line"
            row "$(cat "$work/line")"
        done
        echo
        crossing "$work/lines"
    done
    if [ -f "$data/questions/train.jsonl.gz" ]; then
        echo
        echo '## Several classes'
        echo
        echo "TREC questions, \`$tree\`, C = 10, one class against the rest. Most examples are support vectors."
        echo
        table "$comparison"
        for target in coarse fine; do
            for n in 1000 2000 5452; do
                note "$n questions, $target"
                gzip -cd "$data/questions/train.jsonl.gz" | awk -v n=$n 'NR <= n' >"$work/part.jsonl"
                row "$("$bench" compare "$work/part.jsonl" $target "$tree" 10 "$repeats" "$budget")"
            done
        done
    fi
    echo
    echo '## Two threads'
    echo
    echo 'The model is the same, byte for byte.'
    echo
    table "kernel${tab}examples${tab}classes${tab}one thread s${tab}two threads s${tab}one / two${tab}least${tab}most${tab}rounds"
    echo "$kernels" | while read -r kernel; do
        for n in $(sizes 3000); do
            case $n in 30000 | 300000) continue ;; esac
            note "$n examples, two threads, $kernel"
            part "$n"
            row "\`$kernel\`$tab$("$bench" threads "$work/part.jsonl" y "$kernel" 1 "$repeats" "$budget")"
        done
    done
    echo
    echo '## Cost of a score'
    echo
    echo 'Models learned from more and more examples, with all support vectors in one structure. The examples that are scored' \
        "($asked neighbours that were not learned from) are given one at a time, or 64 in a call."
    echo
    table "kernel${tab}examples${tab}support vectors${tab}memory, MB${tab}one at a time, µs${tab}64 together, µs${tab}ratio"
    echo "$kernels" | while read -r kernel; do
        for n in $(sizes 1); do
            note "scores after $n examples, $kernel"
            part "$n"
            cat "$work/asked.jsonl" >>"$work/part.jsonl"
            row "\`$kernel\`$tab$("$bench" score "$work/part.jsonl" "$kernel" 1 "$repeats" "$asked" "$n")"
        done
    done
} | tee "$out"
