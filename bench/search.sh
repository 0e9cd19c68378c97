#!/bin/sh
# The tables of bench/results/search.md: what search costs. See bench/run. LARGE=1 adds a million trees of PropBank.
program=espalier_bench_search
. "$(dirname "$0")/common.sh"
out=bench/results/search.md
code=$data/code/code.jsonl.zst
if [ ! -f "$code" ]; then
    echo "bench: no $code; no tables of search" >&2
    exit 0
fi

zstd -dcq "$code" >"$work/code.jsonl"
awk -F '\t' '$1 == 55 { print $2 }' "$data/code/t2.queries.tsv" >"$work/names"
awk 'NR == FNR { wanted[$1]; next } { split($0, part, "\""); if (part[4] in wanted) print }' "$work/names" "$work/code.jsonl" >"$work/queries.jsonl"
head -n 20 "$work/queries.jsonl" >"$work/few.jsonl"
# Tokens of the leaves, for sequences.
tokens() { sed 's/"tree": "\(.*\)"}$/\1/; s/\\\\//g; s/^{"id": "[^"]*", //; s/([^ ()]*//g; s/[()"\\|]//g; s/  */ /g; s/.*/{"words": "&"}/' "$1"; }
tokens "$work/queries.jsonl" | head -n 20 >"$work/queries.words.jsonl"
head -n 5000 "$work/code.jsonl" >"$work/5000.jsonl"
head -n 20000 "$work/code.jsonl" >"$work/20000.jsonl"
tokens "$work/5000.jsonl" >"$work/5000.words.jsonl"

{
    echo "# Search"
    echo
    echo "Made by \`bench/run search\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Times are those of the processor, on one thread. Java functions of" \
        'BigCloneBench; the queries are those of clone type 2, seed 55, 100 for `st` and `sst`, 20 for the others.'
    echo
    echo 'Index: seconds to prepare the examples. Open: milliseconds until the first search can start, checksum included; kernels other than `st`, `sst`' \
        'and `sasst` are prepared again. Alone: milliseconds for a query, parsed and searched in a call of its own, 10 best; batch: all of them in' \
        'one call. Row: whole Gram rows, for comparison. Skipped: percent of all similarities that bounds made needless. Pairs: seconds for all pairs above' \
        '0.9, and how many there are.'
    echo
    table "kernel${tab}examples${tab}index, s${tab}file, MB${tab}open, ms${tab}alone, ms${tab}batch, ms${tab}row, ms${tab}skipped, %${tab}pairs, s${tab}pairs${tab}memory, MB"
    for n in 5000 20000 code; do
        for kernel in 'norm(sst(tree, lambda=0.4))' 'norm(sst(tree, lambda=0.1))' 'norm(st(tree, lambda=0.4))'; do
            row "$("$bench" "$kernel" "$work/$n.jsonl" "$work/queries.jsonl" 0.9 "$work/index")"
        done
    done
    row "$("$bench" 'norm(ptk(tree))' "$work/5000.jsonl" "$work/few.jsonl" 0 "$work/index")"
    row "$("$bench" 'norm(ptk(tree))' "$work/code.jsonl" "$work/few.jsonl" 0 "$work/index")"
    row "$("$bench" 'norm(seq(words, n=3))' "$work/5000.words.jsonl" "$work/queries.words.jsonl" 0 "$work/index")"
    if [ -n "${LARGE:-}" ] && [ -d "$data/srl/propbank" ]; then
        # The pieces of trees that connect predicates with their arguments.
        "$build/espalier" srl -q --task role --limit 1000000 "$data"/srl/propbank/*.srl.gz | sed 's/, "x": {.*/}/' >"$work/roles.jsonl"
        head -n 100 "$work/roles.jsonl" >"$work/roles.queries.jsonl"
        row "$("$bench" 'norm(sst(tree, lambda=0.4))' "$work/roles.jsonl" "$work/roles.queries.jsonl" 0 "$work/index")"
    fi
} | tee "$out"
