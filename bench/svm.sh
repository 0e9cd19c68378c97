#!/bin/sh
# The tables of bench/results/svm.md: support vector machines. See bench/run.
program=espalier_bench_svm
. "$(dirname "$0")/common.sh"
out=bench/results/svm.md
kernel='norm(sst(tree, lambda=0.4))'
ftk='norm(sst(tree, lambda=0.4, algorithm=ftk))'

if [ -f "$data/questions/train.jsonl.gz" ]; then
    source='TREC questions'
    train=$data/questions/train.jsonl.gz test=$data/questions/test.jsonl.gz target=coarse
else
    echo "bench: no questions in $data; sampled ones stand in" >&2
    source='questions sampled from examples/questions.grammar'
    "$build/espalier" sample --grammar examples/questions.grammar --count 5952 -o "$work/all.jsonl"
    head -n 5452 "$work/all.jsonl" >"$work/train.jsonl"
    tail -n 500 "$work/all.jsonl" >"$work/test.jsonl"
    train=$work/train.jsonl test=$work/test.jsonl target=y
fi

{
    echo "# Support vector machines"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Times are medians of $repeats alternating runs in one" \
        "process, on one thread; a ratio is the median of the ratios within a round."
    echo "Data: $source. Kernel: \`$kernel\`, C = 10."
    echo
    echo '## From the data file to the model file'
    echo
    table "examples${tab}classes${tab}whole s${tab}reading s${tab}Gram matrix s${tab}solver s${tab}writing s${tab}support vectors"
    row "$("$bench" whole "$train" "$target" "$kernel" 10 "$repeats" "$work/model")"
    [ "$target" = y ] || row "$("$bench" whole "$train" fine "$kernel" 10 "$repeats" "$work/model")"
    echo
    echo '## The solver against LIBSVM'
    echo
    echo 'All one-vs-rest problems on one ready Gram matrix, tolerance 0.001, LIBSVM with a precomputed kernel and room for all rows.' \
        'The objective is the relative difference that is largest over the problems; below 0: ours is better.'
    echo
    table "problems${tab}ours s${tab}LIBSVM s${tab}ours / LIBSVM${tab}least${tab}most${tab}our iterations${tab}LIBSVM's${tab}objective"
    row "$("$bench" libsvm "$train" "$target" "$kernel" 10 "$repeats")"
    if [ "$target" != y ]; then
        echo
        echo '## Many classes against few'
        echo
        table "few${tab}many${tab}solver, few s${tab}many s${tab}many / few${tab}with the Gram matrix, few s${tab}many s${tab}many / few"
        row "$("$bench" classes "$train" coarse fine "$kernel" 10 "$repeats")"
    fi
    echo
    echo '## Prediction by one DAG against every support vector by FTK'
    echo
    echo 'The same model. Its first prediction prepares the support vectors, once; the last ratio counts that in for a single call.'
    echo
    table "examples${tab}support vectors${tab}DAG s${tab}FTK s${tab}FTK / DAG${tab}preparation s${tab}with preparation${tab}largest difference${tab}examples/s${tab}examples/s, training set as input"
    row "$("$bench" predict "$train" "$test" "$target" "$kernel" "$ftk" 10 "$repeats")"
    echo
    if [ -d "$data/srl/propbank" ]; then
        zcat "$data"/srl/propbank/*.srl.gz | "$bench" constituents 105000 >"$work/all.jsonl"
        tail -n 5000 "$work/all.jsonl" >"$work/held.jsonl"
        echo '## Many small trees, 2 GiB of memory'
        echo
        echo 'Constituents NP, PP, S and VP of 4 to 25 nodes from PropBank (trees without words), drawn by chance; the class is whether the' \
            'constituent is an argument of some predicate, which is so for one in three. C = 1, one run each, in memory that was in use just before.' \
            "Accuracy on 5,000 others, of which $(grep -c '"y": -1' "$work/held.jsonl") are no arguments."
        echo
        table "trees${tab}seconds${tab}rows computed${tab}iterations${tab}support vectors${tab}peak memory, MB${tab}accuracy${tab}end"
        for n in 25000 50000 100000; do
            head -n "$n" "$work/all.jsonl" >"$work/part.jsonl"
            row "$("$bench" large "$work/part.jsonl" "$work/held.jsonl" "$kernel" 1 2048)"
        done
    fi
} | tee "$out"
