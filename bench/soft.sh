#!/bin/sh
# The tables of bench/results/soft.md: kernels that match softly. See bench/run.
program=espalier_bench_ground
. "$(dirname "$0")/common.sh"
out=bench/results/soft.md

if [ -f "$data/questions/train.klp.gz" ]; then
    columns='lct grct loct'
    "$build/espalier" convert "$data/questions/train.klp.gz" -o "$work/questions.jsonl"
else
    echo "bench: no data in $data; sampled questions stand in" >&2
    columns=tree
    "$build/espalier" sample --grammar examples/questions.grammar --count 5452 -o "$work/questions.jsonl"
fi

# nodes TREES: of the file of programs, per tree.
nodes() { "$build/espalier" info "$work/programs.mrg" | awk -v trees="$1" '$1 == "nodes" { print int($2 / trees) }'; }

{
    echo "# Soft matching"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Times are medians of alternating runs in one" \
        "process; one thread; double precision."
    echo
    echo '## Partial trees: all trees at once (dag) against tree by tree (pair)'
    echo
    echo 'Kernel: `norm(ptk(lambda=0.4, mu=0.4))` on the questions. `pair` is the published algorithm, well tuned: nodes sorted by label, every pair of'
    echo 'equal labels once, O(|c1| |c2|) for its children, no allocation.'
    echo
    table "column${tab}trees${tab}dag s${tab}dag ns/pair${tab}pair s${tab}pair ns/pair${tab}pair / dag${tab}least${tab}most"
    for column in $columns; do
        row "$column$tab$("$bench" compare "$work/questions.jsonl" 3 1 "norm(ptk($column))" 1 "norm(ptk($column, algorithm=pair))")"
    done
    echo
    echo '## Partial trees of programs: how the cost grows with the size and the number of trees'
    echo
    echo 'Random trees in the shape of parsed programs; nodes: of a tree, on average, leaves included.'
    echo
    table "nodes${tab}trees${tab}dag s${tab}dag ns/pair${tab}pair s${tab}pair ns/pair${tab}pair / dag${tab}least${tab}most"
    for n in 320 1080 3300; do
        programs 40 $n >"$work/programs.mrg"
        [ $n -gt 2000 ] && times=1 || times=3
        row "$(nodes 40)$tab$("$bench" compare "$work/programs.mrg" $times 1 'norm(ptk)' 1 'norm(ptk(algorithm=pair))')"
    done
    echo
    table "nodes${tab}trees${tab}seconds${tab}ms per tree${tab}memory beyond the output, MB"
    for size in '40 320' '40 1080' '40 3300' '80 1080' '160 1080'; do
        programs $size >"$work/programs.mrg"
        row "$(nodes "${size% *}")$tab$("$bench" grow "$work/programs.mrg" 3 'norm(ptk)' |
            awk -F '\t' '{ printf "%d\t%.3f\t%.1f\t%.1f", $1, $2, 1000 * $2 / $1, $5 }')"
    done
} | tee "$out"
