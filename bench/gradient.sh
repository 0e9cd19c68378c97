#!/bin/sh
# The table of bench/results/gradient.md: gradients of tree kernels. See bench/run.
program=espalier_bench_gradient
. "$(dirname "$0")/common.sh"
out=bench/results/gradient.md

if [ -f "$data/srl/ewt.srl.gz" ]; then
    source='English Web Treebank'
    "$build/espalier" convert "$data/srl/ewt.srl.gz" -o "$work/all.jsonl"
else
    echo "bench: no data in $data; sampled questions stand in" >&2
    source='sampled questions'
    "$build/espalier" sample --grammar examples/questions.grammar --count 2000 -o "$work/all.jsonl"
fi

nine=''
for label in S NP VP PP SBAR ADJP ADVP QP PRT; do nine="$nine, lambda.$label=0.4, alpha.$label=1"; done

{
    echo "# Gradients"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Seconds of the processor on one thread, medians of $repeats" \
        "alternating runs in one process; a ratio is the median of the ratios within a round."
    echo "Trees: $source. Kernels are normalised, lambda = 0.4 and alpha = 1."
    echo
    echo '## One matrix and the gradient in all hyperparameters against derivatives carried forward'
    echo
    echo 'The gradient is that of a weighted sum of the whole matrix. The published way (Beck et al. 2015) goes pair of trees by pair of trees:' \
        'the recursion carries a vector of derivatives for every pair of nodes, and the derivatives of all values are kept until the weights are' \
        'known. Here it has sorted trees, reused memory and vector code. `direct` is the least that this way can take: no vectors' \
        'for pre-terminals, and weights that are known beforehand, so that nothing is kept. Ratios are to matrix and gradient together.' \
        'The difference is the largest between two derivatives, over the largest derivative.'
    echo
    table "kernel${tab}trees${tab}hyperparameters${tab}matrix s${tab}gradient s${tab}gradient / matrix${tab}published s${tab}ratio${tab}least${tab}most${tab}direct s${tab}ratio${tab}least${tab}most${tab}difference"
    for n in 500 1000 2000; do
        head -n "$n" "$work/all.jsonl" >"$work/part.jsonl"
        row "sst$tab$("$bench" compare "$work/part.jsonl" "$repeats" 'norm(sst(tree, lambda=0.4))')"
        row "sasst, shared$tab$("$bench" compare "$work/part.jsonl" "$repeats" 'norm(sasst(tree, lambda=0.4))')"
        row "sasst, nine labels$tab$("$bench" compare "$work/part.jsonl" "$repeats" "norm(sasst(tree, lambda=0.4$nine))")"
        row "sasst, all labels$tab$("$bench" compare "$work/part.jsonl" "$repeats" 'norm(sasst(tree, lambda=0.4))' apart)"
    done
} | tee "$out"
