#!/bin/sh
# The tables of bench/results/sequences.md: the sequence kernel. See bench/run.
program=espalier_bench_sequences
. "$(dirname "$0")/common.sh"
out=bench/results/sequences.md

if [ -f "$data/questions/train.jsonl.gz" ]; then
    source='TREC questions, UCI promoters, and the first 1,000 of UCI splice junctions'
    cp "$data/questions/train.jsonl.gz" "$work/questions.gz"
    cp "$data/questions/test.jsonl.gz" "$work/test.gz"
    cp "$data/dna/promoters.jsonl.gz" "$work/promoters.gz"
    zcat "$data/dna/splice.jsonl.gz" | head -n 1000 >"$work/splice"
else
    echo "bench: no questions in $data; sampled ones stand in" >&2
    source='questions sampled from examples/questions.grammar'
    "$build/espalier" sample --grammar examples/questions.grammar --count 5952 -o "$work/all.jsonl"
    head -n 5452 "$work/all.jsonl" >"$work/questions.gz"
    tail -n 500 "$work/all.jsonl" >"$work/test.gz"
fi

compare() # NAME FILE COLUMN N... : rows of the first table
{
    name=$1 file=$2 column=$3
    shift 3
    for n; do row "$name$tab$("$bench" gram "$file" "$column" "$n" "$repeats")"; done
}

{
    echo "# Sequences"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Times are medians of $repeats alternating runs in one" \
        "process, on one thread; a ratio is the median of the ratios within a round."
    echo "Data: $source. Kernel: \`norm(seq(n, lambda=0.5))\`."
    echo
    echo '## Whole matrices (block) against pair by pair (pair)'
    echo
    echo 'The recursion of `pair` allocates nothing, keeps two rows per length and shares one between all lengths where n exceeds them.' \
        '`match` does the sums over matching tokens only, found by an inverted index; `block` takes patterns where that is less work.' \
        'The difference is the largest between two values of the matrices of `block` and `pair`.'
    echo
    table "data${tab}sequences${tab}n${tab}block s${tab}match s${tab}pair s${tab}block, million pairs/s${tab}pair, million pairs/s${tab}pair / block${tab}least${tab}most${tab}difference"
    compare questions "$work/questions.gz" words 2 3 4 inf
    if [ -f "$work/promoters.gz" ]; then
        compare promoters "$work/promoters.gz" seq 2 3 4 5 inf
        compare splice "$work/splice" seq 2 3 4 inf
    fi
    echo
    echo '## Scores by one weight per pattern against rows of matches'
    echo
    echo 'The questions of the training set with coefficients 1 and -1, scoring those of the test set.'
    echo
    table "examples${tab}scored${tab}n${tab}preparing s${tab}patterns s${tab}rows s${tab}rows / patterns${tab}least${tab}most${tab}scores/s by patterns${tab}difference"
    for n in 2 3 4; do row "$("$bench" score "$work/questions.gz" "$work/test.gz" words "$n" "$repeats")"; done
} | tee "$out"
