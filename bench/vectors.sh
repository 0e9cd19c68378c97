#!/bin/sh
# The tables of bench/results/vectors.md: sums of polynomial kernels that grow. See bench/run.
program=espalier_bench_online_vectors
. "$(dirname "$0")/common.sh"
out=bench/results/vectors.md
if [ ! -f "$data/srl/ewt.srl.gz" ]; then
    echo "bench: no $data/srl/ewt.srl.gz; no tables of vectors" >&2
    exit 0
fi

# An online learner keeps about as many positive as negative examples; it is asked about all there are.
"$build/espalier" srl -q "$data/srl/ewt.srl.gz" | awk -v kept="$work/kept" -v asked="$work/asked" '
    NR % 6011 == 1 { print >asked }
    /"y": 1,/ { if (++yes % 3 == 0) print >kept; next }
    ++no % 60 == 0 { print >kept }'
head -n 60000 "$work/kept" | cat - "$work/asked" >"$work/srl.jsonl"
asked=$(wc -l <"$work/asked")
rm "$work/kept" "$work/asked"

{
    echo "# Vectors in online models"
    echo
    echo "Made by \`make bench\` ($(date -u +%Y-%m-%d); $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)," \
        "$(nproc) cores, load before the start $(cut -d ' ' -f 1 /proc/loadavg)). Times are medians of $repeats alternating runs in one" \
        "process, on one thread. Kernel: \`poly\`, that is (x·e + 1)³."
    echo
    echo '## Microseconds per score'
    echo
    echo "Argument boundaries in EWT, about 29 binary features per example; $asked examples are asked about. Then words of TREC questions, whose counts" \
        'are not all 1. `heap` merges the inverted lists by a heap as Aiolli et al. (2007) do; `array` adds them up in an array of numbers; `bytes`' \
        'in bytes, frequent features as vectors of bytes; `pairs` is the form plain, `dag` the default. The last column is the largest' \
        'relative difference between any two.'
    echo
    table "examples kept${tab}list entries per score${tab}heap${tab}array${tab}bytes${tab}pairs${tab}dag${tab}memory of dag, MB${tab}difference"
    for n in 1000 10000 60000; do row "$("$bench" forms "$work/srl.jsonl" y x "$n" "$asked" "$repeats")"; done
    if [ -f "$data/questions/train.jsonl.gz" ]; then
        for n in 1000 5000; do row "$("$bench" forms "$data/questions/train.jsonl.gz" coarse words "$n" 400 "$repeats")"; done
    fi
    echo
    echo '## Several outputs'
    echo
    echo 'Boundaries as above. Each example has a coefficient of 1 for one output and of −1 for another; then the same with coefficients that' \
        'are all different, as averaging leaves them.'
    echo
    table "examples kept${tab}outputs${tab}µs per score${tab}memory, MB${tab}µs, all different${tab}memory, MB"
    for n in 1 6 50; do row "$("$bench" outputs "$work/srl.jsonl" y x 60000 "$asked" "$repeats" "$n")"; done
} | tee "$out"
