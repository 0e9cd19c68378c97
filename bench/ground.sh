#!/bin/sh
# The tables of bench/results/ground.md: Gram matrices and reading. See bench/run.
program=espalier_bench_ground
. "$(dirname "$0")/common.sh"
out=bench/results/ground.md
kernel='norm(sst(lambda=0.4))'

if [ -f "$data/srl/ewt.srl.gz" ]; then
    source='English Web Treebank'
    "$build/espalier" convert "$data/srl/ewt.srl.gz" -o "$work/all.jsonl"
    "$build/espalier" convert "$data/questions/train.jsonl.gz" --target coarse -o "$work/questions.jsonl"
    zcat "$data"/srl/propbank/*.srl.gz | grep '^T' | cut -f 4 >"$work/propbank.trees"
    zcat "$data/srl/ewt.srl.gz" | grep '^T' | cut -f 4 >"$work/ewt.trees"
else
    echo "bench: no data in $data; sampled questions stand in" >&2
    source='sampled questions'
    "$build/espalier" sample --grammar examples/questions.grammar --count 16000 -o "$work/all.jsonl"
    head -n 5452 "$work/all.jsonl" >"$work/questions.jsonl"
    "$build/espalier" convert "$work/all.jsonl" -o "$work/words.jsonl"
    sed 's/.*"tree": "\(.*\)", "words".*/\1/' "$work/words.jsonl" >"$work/propbank.trees"
    cp "$work/propbank.trees" "$work/ewt.trees"
fi
head -n 3000 "$work/all.jsonl" >"$work/3000.jsonl"

{
    echo "# Gram matrices and reading"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores). Times are medians of $repeats alternating runs in one process; one thread unless said."
    echo "Trees: $source. Kernel: \`$kernel\`, double precision."
    echo
    echo '## All trees at once (dag) against tree by tree (ftk)'
    echo
    table "data${tab}trees${tab}dag s${tab}dag ns/pair${tab}ftk s${tab}ftk ns/pair${tab}ftk / dag${tab}least${tab}most"
    row "3,000 trees$tab$("$bench" compare "$work/3000.jsonl" "$repeats" 1 "$kernel" 1 'norm(sst(lambda=0.4, algorithm=ftk))')"
    row "questions$tab$("$bench" compare "$work/questions.jsonl" 3 1 'norm(sst(tree, lambda=0.4))' 1 'norm(sst(tree, lambda=0.4, algorithm=ftk))')"
    echo
    echo '## How the cost grows'
    echo
    table "trees${tab}seconds${tab}million pairs/s${tab}output MB${tab}memory beyond the output, MB"
    for n in 1000 2000 4000 8000 16000; do
        head -n "$n" "$work/all.jsonl" >"$work/part.jsonl"
        row "$("$bench" grow "$work/part.jsonl" 3 "$kernel")"
    done
    echo
    echo '## Two threads against one'
    echo
    table "trees${tab}2 threads s${tab}ns/pair${tab}1 thread s${tab}ns/pair${tab}1 thread / 2 threads${tab}least${tab}most"
    for n in 3000 8000; do
        head -n "$n" "$work/all.jsonl" >"$work/part.jsonl"
        row "$("$bench" compare "$work/part.jsonl" "$repeats" 2 "$kernel" 1 "$kernel")"
    done
    echo
    echo '## Distance from the floor: every touched occurrence added once, the output written once'
    echo
    table "trees${tab}million adds${tab}adds s${tab}ns/add${tab}write s${tab}Gram s${tab}times the floor"
    for n in 3000 8000; do
        head -n "$n" "$work/all.jsonl" >"$work/part.jsonl"
        row "$("$bench" floor "$work/part.jsonl" "$repeats" "$kernel")"
    done
    echo
    echo '## Reading bracketed text into the forest'
    echo
    table "file${tab}trees${tab}MB${tab}MB/s${tab}forest MB${tab}peak memory of reading, MB"
    row "treebank with words$tab$("$bench" read "$work/ewt.trees" "$repeats")"
    row "all of PropBank$tab$("$bench" read "$work/propbank.trees" "$repeats")"
} | tee "$out"
