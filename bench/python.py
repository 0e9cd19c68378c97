#!/usr/bin/env python3
"""What the Python binding costs: K(X) from bracket strings against `espalier gram` on the same trees, one thread.

    python.py TREES [COUNT]     TREES: a file of bracketed trees, one a line; COUNT of them (3000)

The package must be installed; ESPALIER names the tool (build/espalier), REPEATS the runs that medians are taken of (7).
Both read the trees, compute the whole matrix and hold it; the tool writes it to /dev/null in addition. Runs alternate.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from espalier import Kernel

KERNELS = ("norm(sst(lambda=0.4))", "norm(ptk)")


def seconds(action: Callable[..., object], *arguments: object, **options: object) -> float:
    start = time.perf_counter()
    action(*arguments, **options)
    return time.perf_counter() - start


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tool, repeats = os.environ.get("ESPALIER", "build/espalier"), int(os.environ.get("REPEATS", "7"))
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    with open(sys.argv[1], encoding="utf-8") as lines:
        trees = [line.strip() for line, _ in zip(lines, range(count))]
    with tempfile.NamedTemporaryFile("w", suffix=".trees", encoding="utf-8") as file:
        file.write("\n".join(trees) + "\n")
        file.flush()
        print(f"K(X) of {len(trees)} trees, one thread, medians of {repeats} alternating runs\n")
        print("| kernel | tool, s | Python, s | ratio |\n|---|---|---|---|")
        for expression in KERNELS:
            kernel = Kernel(expression, threads=1)
            command = [
                tool,
                "gram",
                "-q",
                "--threads",
                "1",
                "-k",
                expression,
                "--format",
                "npy",
                "-o",
                "/dev/null",
                file.name,
            ]
            times = [(seconds(subprocess.run, command, check=True), seconds(kernel, trees)) for _ in range(repeats)]
            by_tool, by_python = (statistics.median(side) for side in zip(*times))
            print(f"| `{expression}` | {by_tool:.3f} | {by_python:.3f} | {by_python / by_tool:.2f} |")


if __name__ == "__main__":
    main()
