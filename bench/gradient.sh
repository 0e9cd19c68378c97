#!/bin/sh
# The tables of bench/results/gradient.md: gradients of kernels. See bench/run.
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

# tokens FILE FIELD: the SMILES strings of a table as sequences of atoms, bonds, branches and rings.
tokens()
{
    tail -n +2 "$1" | cut -d , -f "$2" | sed -E 's/\[[^]]*\]|Br|Cl|%[0-9][0-9]|./& /g; s/ $//; s/\\/\\\\/g; s/.*/{"words": "&"}/'
}

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
    echo
    echo '## The gradient of any kernel beside its matrix'
    echo
    echo 'The matrix is known when the gradient is asked for, as it is to a learner. Molecules: SMILES strings as tokens (Photoswitch: the first 313; Lipophilicity:' \
        'the first 1,000). Dependency trees: `grct`, 500 sentences of the English Web Treebank. Programs: 200 syntax trees of Java methods.'
    echo
    table "data${tab}kernel${tab}examples${tab}hyperparameters${tab}matrix s${tab}gradient s${tab}gradient / matrix${tab}least${tab}most"
    share() { [ ! -s "$work/$1.jsonl" ] || row "$1$tab\`$2\`$tab$("$bench" share "$work/$1.jsonl" "$repeats" "$2")"; }
    if [ -d "$data/molecules" ]; then
        tokens "$data/molecules/Photoswitch.csv" 2 | head -n 313 >"$work/Photoswitch.jsonl"
        tokens "$data/molecules/Lipophilicity.csv" 3 | head -n 1000 >"$work/Lipophilicity.jsonl"
    fi
    if [ -f "$data/dependency/ewt-2000.conllu.gz" ]; then
        "$build/espalier" convert "$data/dependency/ewt-2000.conllu.gz" -o "$work/parsed.jsonl"
        head -n 500 "$work/parsed.jsonl" >"$work/dependencies.jsonl"
    fi
    if [ -f "$data/code/code.jsonl.zst" ]; then
        zstdcat "$data/code/code.jsonl.zst" 2>/dev/null | head -n 200 >"$work/programs.jsonl"
    fi
    head -n 1000 "$work/all.jsonl" >"$work/sentences.jsonl"
    for n in 3 5 inf; do
        share Photoswitch "norm(seq(n=$n))"
        share Lipophilicity "norm(seq(n=$n))"
    done
    share Photoswitch '1*norm(seq) + 1*norm(rbf)'
    for kernel in ptk sst; do
        share dependencies "norm($kernel(grct))"
        share programs "norm($kernel(tree))"
        share sentences "norm($kernel(tree))"
    done
    share dependencies '1*norm(ptk(grct)) + 1*norm(ptk(lct))'
} | tee "$out"
