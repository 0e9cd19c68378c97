#!/bin/sh
# The tables of bench/results/gp.md: what a Gaussian process takes for one step of its search, and on several threads. See
# bench/run. THREADS has the numbers of threads to try, default: 1, and twice as many up to the number of cores.
program=espalier_bench_gp
. "$(dirname "$0")/common.sh"
out=bench/results/gp.md

if [ -f "$data/quality/fr-en.jsonl.gz" ]; then
    source='fr-en, quality estimation; kernels of the target side'
    gzip -cd "$data/quality/fr-en.jsonl.gz" >"$work/all.jsonl"
    column=tgt
else
    echo "bench: no data in $data; sampled questions stand in" >&2
    source='sampled questions, their numbers of nodes as targets'
    "$build/espalier" sample --grammar examples/questions.grammar --count 2000 |
        awk '{ sub(/"y": "[A-Z]*"/, "\"y\": " gsub(/\(/, "(")); print }' >"$work/all.jsonl"
    column=tree
fi
nine=''
for label in S NP VP PP SBAR ADJP ADVP QP PRT; do nine="$nine, lambda.$label=0.4, alpha.$label=1"; done

{
    echo "# Gaussian processes"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Seconds of the processor on one thread, medians of $repeats" \
        "alternating runs in one process. Data: $source."
    echo
    echo 'One log likelihood, and one with the gradient in all hyperparameters (the noise is one of them). The factor is that of the' \
        'matrix, and includes the solutions with it; the gradient includes the inverse.'
    echo
    table "kernel${tab}examples${tab}hyperparameters${tab}matrix s${tab}likelihood s${tab}with gradient s${tab}share of the matrix in the likelihood${tab}of the factor${tab}share of the gradient in the last${tab}with gradient / likelihood"
    for n in 500 1000 2000; do
        head -n "$n" "$work/all.jsonl" >"$work/part.jsonl"
        row "norm(sst)$tab$("$bench" likelihood "$work/part.jsonl" "$repeats" "norm(sst($column, lambda=0.4))")"
        row "norm(sasst), nine labels$tab$("$bench" likelihood "$work/part.jsonl" "$repeats" "norm(sasst($column, lambda=0.4$nine))")"
        row "norm(sasst), all labels$tab$("$bench" likelihood "$work/part.jsonl" "$repeats" "norm(sasst($column, lambda=0.4))" apart)"
    done
    echo
    echo 'From the data to the optimum (`1*norm(sst)`, all examples) on several threads, alternating. The seconds of the thread that asked count what it' \
        'does itself: with nothing else on the machine the clock shows the same, so that the last column is what the threads gain there.'
    echo
    threads=${THREADS:-}
    for n in 1 2 4 8 16 32 64; do [ -n "${THREADS:-}" ] || [ "$n" -gt "$(nproc)" ] || threads="$threads $n"; done
    table "threads${tab}seconds${tab}of all processors${tab}of the thread that asked${tab}times faster${tab}by that thread"
    side=$([ "$column" = tgt ] && echo src || echo "$column")
    # shellcheck disable=SC2086 # several words
    "$bench" optimum "$work/all.jsonl" "$((repeats < 3 ? repeats : 3))" "1*norm(sst($side))" $threads |
        while read -r line; do row "$line"; done
    echo
    echo 'One log likelihood with its gradient, step by step (`1*norm(sst)`, all examples), seconds. `cuda` is all cores and a GPU, where there is one; copies to' \
        'and from it are part of the factor and the inverse.'
    echo
    table "examples${tab}threads${tab}all${tab}matrix${tab}factor${tab}solution${tab}inverse${tab}gradient"
    ways="1 $(nproc)"
    head -n 10 "$work/all.jsonl" >"$work/part.jsonl"
    if "$bench" steps "$work/part.jsonl" 1 "norm(sst($side))" cuda >/dev/null 2>&1; then ways="$ways cuda"; fi
    # shellcheck disable=SC2086 # several words
    "$bench" steps "$work/all.jsonl" "$((repeats < 5 ? repeats : 5))" "1*norm(sst($side))" $ways |
        while read -r line; do row "$line"; done
} | tee "$out"
