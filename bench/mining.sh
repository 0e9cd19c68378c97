#!/bin/sh
# The tables of bench/results/mining.md: patterns that tell classes apart. See bench/run.
program=espalier_bench_mining
. "$(dirname "$0")/common.sh"
out=bench/results/mining.md

if [ -f "$data/questions/train.jsonl.gz" ]; then
    source='TREC questions'
    train=$data/questions/train.jsonl.gz test=$data/questions/test.jsonl.gz target=coarse class=LOC
else
    echo "bench: no questions in $data; sampled ones stand in" >&2
    source='questions sampled from examples/questions.grammar'
    "$build/espalier" sample --grammar examples/questions.grammar --count 5952 -o "$work/all.jsonl"
    head -n 5452 "$work/all.jsonl" >"$work/train.jsonl"
    tail -n 500 "$work/all.jsonl" >"$work/test.jsonl"
    train=$work/train.jsonl test=$work/test.jsonl target=y class=LOC
fi

mine() { row "\`$1\`$tab$("$bench" mine "$train" "$target" "$class" "$1" "$repeats")"; }
predict() { row "\`$1\`$tab$("$bench" predict "$train" "$test" "$target" "$class" "$1" "$repeats")"; }

{
    echo "# Mining"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores). Times are medians of $repeats alternating runs in one process, on one thread."
    echo "Data: $source, class $class against the rest."
    echo
    echo '## With and without the bound on what longer patterns can reach'
    echo
    echo 'Memory is that of mining beyond the data. Without the bound the same patterns are found.'
    echo
    table "kernel${tab}kept${tab}counted${tab}s${tab}MB${tab}counted without${tab}s${tab}MB${tab}counted without / with${tab}time without / with"
    for n in 2 3 4; do mine "fseq(words, n=$n)"; done
    mine 'fseq(words, n=4, support=2)'
    mine 'fseq(words, n=4, tau=20)'
    for n in 3 5; do mine "fsst(tree, n=$n)"; done
    mine 'fsst(tree, n=5, support=2)'
    mine 'fsst(tree, n=5, tau=20)'
    echo
    echo '## Prediction through the kept patterns'
    echo
    echo 'From tokens or trees to the score of a model that keeps one weight for each pattern.'
    echo
    table "kernel${tab}patterns${tab}examples${tab}patterns per example${tab}s${tab}examples/s${tab}million features/s"
    for n in 2 3 4; do predict "fseq(words, n=$n)"; done
    predict 'fseq(words, n=inf, support=2)'
    for n in 3 5; do predict "fsst(tree, n=$n)"; done
} | tee "$out"
