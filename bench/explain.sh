#!/bin/sh
# The tables of bench/results/explain.md: what decides in models. See bench/run.
program=espalier_bench_explain
. "$(dirname "$0")/common.sh"
out=bench/results/explain.md
espalier=$build/espalier

if [ -f "$data/questions/train.jsonl.gz" ]; then
    source='TREC questions'
    train=$data/questions/train.jsonl.gz test=$data/questions/test.jsonl.gz target=coarse
else
    echo "bench: no questions in $data; sampled ones stand in" >&2
    source='questions sampled from examples/questions.grammar'
    "$espalier" sample --grammar examples/questions.grammar --count 5452 -o "$work/train.jsonl"
    "$espalier" sample --grammar examples/questions.grammar --count 500 --seed 2 -o "$work/test.jsonl"
    train=$work/train.jsonl test=$work/test.jsonl target=y
fi
stream=1000000

svm() # KERNEL C
{
    "$espalier" train -q --target "$target" -k "$1" -C "$2" -o "$work/model" "$train"
    row "svm, \`$1\`$tab$(support)$tab$("$bench" model "$work/model" 50 "$repeats")"
}
support() { "$espalier" info "$work/model" | sed -n 's/^support examples	//p'; }
perceptron() # KERNEL
{
    "$espalier" sample --grammar examples/questions.grammar --count $stream |
        "$espalier" train -q -l perceptron --average -k "$1" -o "$work/model" - 2>/dev/null
    row "perceptron after $stream, \`$1\`$tab$(support)$tab$("$bench" model "$work/model" 50 "$repeats")"
}
example()
{
    "$espalier" train -q --target "$target" -k "$1" -C "$2" -o "$work/model" "$train"
    row "\`$1\`$tab$("$bench" example "$work/model" "$test" 10 3)"
}

{
    echo "# Explanations"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores). Times are medians of $repeats runs in one process, on one thread."
    echo "Data: $source; the perceptron reads questions sampled from examples/questions.grammar."
    echo
    echo '## The 50 features of largest weight, for each class'
    echo
    table "model${tab}support examples${tab}features${tab}exact${tab}ms to prepare${tab}ms to search"
    svm 'norm(sst(tree, lambda=0.4))' 10
    svm 'norm(sst(tree, lambda=0.8))' 10
    svm 'norm(sst(tree, lambda=1))' 10
    svm 'norm(st(tree))' 10
    svm 'norm(seq(words, n=3))' 10
    svm 'norm(seq(words, n=inf, lambda=0.8))' 10
    svm 'norm(fsst(tree, n=4, support=2))' 10
    perceptron 'norm(sst(tree, lambda=0.4))'
    echo
    echo '## Examples: ten features up and ten down for the predicted class'
    echo
    table "kernel${tab}examples${tab}ms for each${tab}ms with the shares of nodes"
    example 'norm(sst(tree, lambda=0.4))' 10
    example 'norm(sst(tree, lambda=1))' 10
    example 'norm(seq(words, n=3))' 10
} | tee "$out"
