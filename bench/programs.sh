#!/usr/bin/env bash
# The table of bench/results/programs.md: partial trees of programs, by the command line tool, so that another build of it (BEFORE) can
# stand beside. See bench/run.
program=espalier
. "$(dirname "$0")/common.sh"
out=bench/results/programs.md
before=${BEFORE:-}
repeats=${REPEATS:-3}

if [ -f "$data/code/code.jsonl.zst" ]; then
    source='Java functions of BigCloneBench, 118 nodes and 110 leaves each on average; queries: those of the first sample of clones of type 1'
    zstdcat "$data/code/code.jsonl.zst" >"$work/all.jsonl"
    awk -F '\t' -v seed=55 'NR == FNR { if ($1 == seed) wanted["\"" $2 "\""] = 1; next } $2 in wanted' \
        "$data/code/t1.queries.tsv" FS='[ ,]' "$work/all.jsonl" >"$work/queries.jsonl"
    sizes=${SIZES:-'100x57350 1000x1000'}
else
    echo "bench: no data in $data; random programs stand in" >&2
    source='random trees in the shape of programs'
    programs 2000 320 >"$work/all.jsonl"
    head -n 100 "$work/all.jsonl" >"$work/queries.jsonl"
    sizes=${SIZES:-'100x2000 500x500'}
fi

# seconds ESPALIER KERNEL: of the processor, as the user, for the whole command.
seconds()
{
    local TIMEFORMAT=%U
    { time "$1" gram -q --threads 1 -k "$2" -o "$work/gram.npy" $files 2>"$work/errors"; } 2>&1 || cat "$work/errors" >&2
}
median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }

# measure SIZE: this build, `sst` and the other build, in turns.
measure()
{
    local rows=${1%x*} columns=${1#*x} name
    awk -v every="$(($(wc -l <"$work/all.jsonl") / columns))" -v n="$columns" 'NR % every == 0 && count++ < n' "$work/all.jsonl" >"$work/columns.jsonl"
    head -n "$rows" "$work/queries.jsonl" >"$work/rows.jsonl"
    files="$work/rows.jsonl $work/columns.jsonl"
    [ "$rows" != "$columns" ] || files=$work/columns.jsonl
    rm -f "$work"/time.*
    for ((i = 0; i < repeats; i++)); do
        seconds "$build/espalier" 'norm(sst(tree))' >>"$work/time.sst"
        seconds "$build/espalier" 'norm(ptk(tree))' >>"$work/time.ptk"
        [ -z "$before" ] || seconds "$before" 'norm(ptk(tree))' >>"$work/time.before"
    done
    [ -n "$before" ] || echo '' >"$work/time.before"
    row "${1%x*}$tab$columns$tab$(for name in sst ptk before; do median <"$work/time.$name"; done | paste -s - |
        awk -F '\t' '{ printf "%s\t%s\t%s\t%s", $1, $2, $3 == "" ? "-" : $3, $3 == "" ? "-" : sprintf("%.1f", $3 / $2) }')"
}

{
    echo "# Partial trees of programs"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Seconds of the processor (user) of \`espalier gram --threads 1\`, reading the file" \
        "included: medians of $repeats alternating runs. Before: the release that \`BEFORE\` names."
    echo
    echo "Trees: $source. Kernel: \`norm(ptk(tree))\`, lambda = mu = 0.4; beside it \`norm(sst(tree))\`."
    echo
    table "rows${tab}columns${tab}sst s${tab}ptk s${tab}ptk before s${tab}before / now"
    for size in $sizes; do measure "$size"; done
} | tee "$out"
