"""Numbers: norms that are exactly 1, single precision, arrays of the caller, sizes that are refused, threads."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from conftest import random_tree

from espalier import Kernel

draw = random.Random(3)
TREES = [random_tree(draw, 4) for _ in range(40)]
TREES += TREES[:15]
WORDS = [tree.replace("(", "").replace(")", "") for tree in TREES]
VECTORS = np.random.default_rng(0).normal(size=(40, 5))
VECTORS = np.vstack([VECTORS, VECTORS[:15]])

TREE_KERNELS = [
    "st", "sst(lambda=0.3)", "sst(algorithm=ftk)", "sst(algorithm=qtk)", "sst(bow=0.3)", "sasst(lambda.S=0.2)", "ptk",
    "ptk(algorithm=pair)", "gtk", "0.3*sst + ptk", "sst*ptk", "norm(sst) + norm(ptk)", "sst^3",
]  # fmt: skip
CASES: list[tuple] = [
    *((kernel, TREES) for kernel in TREE_KERNELS),
    *((kernel, WORDS) for kernel in ("seq(n=3)", "seq(n=4, gap=0)", "seq(n=inf, lambda=0.4)", "linear")),
    *((kernel, VECTORS) for kernel in ("linear", "poly(degree=3, coef0=1)", "rbf(gamma=0.3)")),
]


@pytest.mark.parametrize("kernel, X", CASES, ids=[f"{kernel}-{type(X[0]).__name__}" for kernel, X in CASES])
def test_the_norm_of_equal_examples_is_one(kernel, X):
    same = np.array([[np.array_equal(a, b) for b in X] for a in X])
    K = Kernel(f"norm({kernel})")
    for gram, equal in ((K(X), same), (K(X, X[:]), same), (K(X[:20], X[10:]), same[:20, 10:])):
        assert (gram[equal] == 1).all() and gram.max() == 1
    assert (K.diag(X) == 1).all()
    assert (Kernel(f"norm({kernel})*norm({kernel})")(X)[same] == 1).all()


def test_unlike_examples_stay_so():
    value = Kernel("norm(linear)")([[1.0, 1e-5]], [[1.0, 0.0]])[0, 0]
    assert value < 1 and value == pytest.approx(1 - 0.5e-10, abs=1e-14)


def test_values_beyond_numbers_are_normalised():
    deep = "(A " * 600 + "a" + ")" * 600  # lambda^nodes is far above what fits
    gram = Kernel("norm(sst(lambda=10))")([deep, deep, "(A a)"])
    assert gram[0, 1] == gram[1, 0] == 1 and 0 <= gram[0, 2] < 1


@pytest.mark.parametrize("kernel", ["sst", "norm(ptk)", "norm(sst) + 0.5*ptk"])
def test_single_precision(kernel):
    K = Kernel(kernel)
    whole, part = K(TREES), K(TREES, TREES[:7])
    for dtype in ("float32", np.float32, np.dtype("f4")):
        half = K(TREES, dtype=dtype)
        assert half.dtype == np.float32 and (half == whole.astype(np.float32)).all()
    assert (K(TREES, TREES[:7], dtype="float32") == part.astype(np.float32)).all()
    assert K(TREES, dtype=float).dtype == np.float64


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_results_in_arrays_of_the_caller(dtype, tmp_path):
    K, n = Kernel("norm(sst)", memory=1000), len(TREES)
    with pytest.raises(MemoryError):
        K(TREES, dtype=dtype)
    expected = Kernel("norm(sst)")(TREES, dtype=dtype)
    file = np.memmap(tmp_path / "gram", dtype=dtype, mode="w+", shape=(n, n))
    assert K(TREES, out=file) is file  # the limit is for what the kernel itself takes
    file.flush()
    assert (np.fromfile(tmp_path / "gram", dtype=dtype).reshape(n, n) == expected).all()
    slab = np.zeros((2 * n, 9), dtype=dtype)
    K(TREES, TREES[:9], out=slab[n:])
    assert slab[n:] == pytest.approx(expected[:, :9], rel=1e-6 if dtype == "float32" else 1e-12)
    assert not slab[:n].any()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"out": np.empty((2, 3))}, r"out has the shape \(2, 3\); the matrix has \(2, 2\)"),
        ({"out": np.empty((2, 2), order="F")}, "out is read-only, or its rows do not stand one after the other"),
        ({"out": np.empty((2, 2), dtype=int)}, "the dtype of out is int64; allowed are float64 and float32"),
        ({"out": [[0.0]]}, "out is a list; allowed is an array"),
        ({"dtype": "int32"}, "dtype is int32; allowed are float64 and float32"),
        ({"dtype": "nonsense"}, "allowed are float64 and float32"),
        ({"out": np.empty((2, 2)), "dtype": "float32"}, "out has the dtype float64, but dtype is float32"),
    ],
)
def test_arrays_that_do_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        Kernel("sst")(["(A a)", "(B b)"], **arguments)


def test_values_beyond_single_precision():
    with pytest.raises(ValueError, match="too large for single precision; take a smaller lambda"):
        Kernel("1e39*sst")(["(A a)", "(B b)"], dtype="float32")


def test_a_matrix_that_is_refused_names_the_ways_out():
    many = Kernel("norm(sst)").dataset(["(A a)"] * 100_000)
    with pytest.raises(MemoryError) as caught:
        Kernel("norm(sst)", memory=10**10)(many)
    text = str(caught.value)
    assert "100000 x 100000 takes 80 GB; the limit is 10 GB" in text
    for way in ("memmap", "dask.gram", "folded", "DagPerceptron", "NystroemFeatures", "Index"):
        assert way in text


COUNT_THREADS = """
import os, random, sys
os.sched_setaffinity(0, {int(cpu) for cpu in sys.argv[1].split()})
from espalier import Kernel
started, seen = len(os.listdir("/proc/self/task")), []
trees = [f"(S {' '.join('(A a%d)' % (i * k % 97) for k in range(60))})" for i in range(600)]
Kernel("ptk", progress=lambda stage, done: seen.append(len(os.listdir("/proc/self/task"))))(trees)
print(max(seen) - started)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are not bound to processors here")
def test_threads_are_those_the_process_may_use():
    """Processors the process is bound to count, not those of the machine. The caller works, too."""
    mine = sorted(os.sched_getaffinity(0))
    for count in {1, min(2, len(mine))}:
        command = [sys.executable, "-c", COUNT_THREADS, " ".join(map(str, mine[:count]))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) <= count - (count == 1)
