#!/usr/bin/env python3
"""How far --mpi scales: a simulation with measured step costs and a stated network.

Steps follow one another as in the programs (docs/clusters.md): a step ends when the slowest rank is done and what it
has to say has arrived. Ranks differ by a few per cent, drawn anew for each step. Costs and counts are arguments, with
the values that were measured as defaults; `espalier train --mpi -v` and bench/clusters.sh print some of them.
"""

import argparse
import math
import random


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--threads", type=int, default=16, help="of a node; there is one rank on each")
    p.add_argument("--bandwidth", type=float, default=1.25e9, help="of a node, bytes per second (10 Gbit Ethernet)")
    p.add_argument("--latency", type=float, default=50e-6, help="of a message, seconds, with what the ranks nap")
    p.add_argument("--score", type=float, default=1.2e-6, help="seconds of a thread to score an example")
    p.add_argument("--value", type=float, default=18e-9, help="seconds of a thread for a kernel value")
    p.add_argument("--judge", type=float, default=27e-9, help="seconds of rank 0 for an example of a verification")
    p.add_argument("--move", type=float, default=1.2e-6, help="seconds of rank 0 for an active example in a pass")
    p.add_argument("--fold", type=float, default=0.6e-6, help="seconds of every rank to add a coefficient to the sum")
    p.add_argument("--tree", type=float, default=90, help="bytes of an example that is sent")
    p.add_argument("--spread", type=float, default=0.05, help="by how much ranks differ")
    p.add_argument("--disk", type=float, default=5e9, help="bytes per second that all nodes write together")
    return p.parse_args()


def work(o, ranks, seconds, threads):
    """The slowest of the ranks, which divide this much work of one thread."""
    each = seconds / ranks / threads
    slowest = max(random.gauss(1.0, o.spread) for _ in range(ranks)) if ranks > 1 else 1.0
    return each * max(slowest, 1.0)


def to_leader(o, ranks, size):
    """All ranks give `size` bytes together to rank 0, which has the narrowest place."""
    return o.latency * math.ceil(math.log2(ranks)) + size * (ranks - 1) / ranks / o.bandwidth if ranks > 1 else 0.0


def to_all(o, ranks, size):
    """Rank 0 gives the same `size` bytes to all, along a tree; large ones in a pipeline."""
    return o.latency * math.ceil(math.log2(ranks)) + 2.0 * size / o.bandwidth if ranks > 1 else 0.0


def svm(o, n, ranks):
    """Counts are those of 300,000 boundary examples of PropBank; support vectors grow as they did up to 4,000,000."""
    support = 10628 * (n / 3e5) ** 0.8  # 85,538 of 4,000,000 (docs/results.md)
    active = 0.9 * support  # on average over the passes
    passes, makes, looks = 94, 17, 7.6  # looks: scores of examples that are not active, as a multiple of n
    block = max(256, 2**28 / 8 / (active + 1))
    held = 3.3 * support
    parts = {"scores": 0.0, "kernel values": 0.0, "rank 0 alone": 0.0, "sums, everywhere": 0.0, "network": 0.0}
    for _ in range(8):
        size = looks * n / 8
        parts["scores"] += work(o, ranks, size * o.score, o.threads)
        parts["network"] += to_leader(o, ranks, 8 * size)
        parts["rank 0 alone"] += size * o.judge
    for _ in range(passes):
        parts["scores"] += work(o, ranks, active * o.score, o.threads)
        parts["rank 0 alone"] += active * o.move
        parts["sums, everywhere"] += active * o.fold
        steps = math.ceil(active / block)
        parts["network"] += (
            3 * steps * to_all(o, ranks, 0) + to_leader(o, ranks, active * 8) + to_all(o, ranks, active * 16)
        )
    for _ in range(makes):
        values = active * min(active, block) / 2
        parts["kernel values"] += work(o, ranks, values * o.value, o.threads)
        parts["network"] += to_leader(o, ranks, values * 8) + to_all(o, ranks, support * 12)
        parts["sums, everywhere"] += support * o.fold
    parts["network"] += to_all(o, ranks, held * o.tree)
    return sum(parts.values()), parts


def gram(o, n, ranks):
    """Strips of 256 rows, the widest first, to whoever is free; half of the matrix is computed, all of it written."""
    height = 256
    free = [random.gauss(1.0, o.spread) * 1e-9 for _ in range(ranks)]
    speed = [max(0.5, random.gauss(1.0, o.spread)) for _ in range(ranks)]
    strips = max(1, n // height)
    # The strips of a thread one after the other; a heap would do the same more slowly for few ranks.
    for k in range(strips, 0, -1):
        r = min(range(ranks), key=free.__getitem__)
        free[r] += (height * k * height * o.value / o.threads) / speed[r] + 2 * o.latency
    computed, written = max(free), n * n * 8 / o.disk
    return max(computed, written), {"compute": computed, "disk": written}


def show(o, name, f, n, counts):
    print(f"{name}, n = {n:,}")
    print("| nodes | seconds | speed-up | efficiency | where the time goes |\n|---|---|---|---|---|")
    base = None
    for ranks in counts:
        random.seed(1)
        seconds, parts = f(o, n, ranks)
        base = base or seconds
        where = ", ".join(f"{k} {v:.1f}" for k, v in sorted(parts.items(), key=lambda x: -x[1]))
        print(f"| {ranks} | {seconds:.1f} | {base / seconds:.1f} | {100 * base / seconds / ranks:.0f} % | {where} |")
    print()


def main():
    o = options()
    counts = [1, 2, 4, 8, 16, 32, 64, 128]
    show(o, "Support vector machine", svm, 1_000_000, counts)
    show(o, "Support vector machine", svm, 100_000_000, counts)
    show(o, "Gram matrix", gram, 1_000_000, counts)


if __name__ == "__main__":
    main()
