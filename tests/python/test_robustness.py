"""Threads, processes that die, interruptions: nothing is harmed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import random_tree

from espalier import SVC, DagPerceptron, Kernel, load


def test_ten_threads_predict_with_one_model(questions, tmp_path):
    X, y = questions
    SVC(C=10).fit(X, y).save(tmp_path / "model")
    expected = load(tmp_path / "model").decision_function(X)
    model = load(tmp_path / "model")  # whose first prediction, which prepares it, all threads make at once
    start = threading.Barrier(10)

    def work(_: int) -> list[np.ndarray]:
        start.wait()
        return [model.decision_function(X) for _ in range(20)]

    with ThreadPoolExecutor(10) as pool:
        for results in pool.map(work, range(10)):
            assert all((result == expected).all() for result in results)


def test_other_threads_run_meanwhile():
    draw = random.Random(1)
    trees = [random_tree(draw, 6) for _ in range(400)]
    ticks, done = [0], threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks[0]
    Kernel("ptk(algorithm=pair)", threads=1)(trees)
    during = ticks[0] - before
    done.set()
    thread.join()
    assert during >= 3


def test_one_learner_in_two_threads_is_refused_not_harmed(questions):
    X, y = questions
    model = DagPerceptron(kernel="sst").partial_fit(X, y)
    errors: list[str] = []

    def learn() -> None:
        for _ in range(30):
            try:
                model.partial_fit(X, y)
                model.predict(X[:2])
            except ValueError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=learn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(errors) <= {"the learner is at work in another thread"}
    assert model.predict(X).shape == (len(X),)


def _save_for_ever(model: SVC, path: str, started) -> None:
    while True:
        model.save(path)
        started.set()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_killed_worker_harms_nothing(method, questions, tmp_path):
    X, y = questions
    model = SVC().fit(X, y)
    expected = model.decision_function(X)
    context = multiprocessing.get_context(method)
    started = context.Event()
    path = str(tmp_path / "model")
    worker = context.Process(target=_save_for_ever, args=(model, path, started))
    worker.start()
    assert started.wait(60)
    time.sleep(0.05)
    worker.kill()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    # The file is whole, whenever the end came, and this process works on.
    assert (load(path).decision_function(X) == expected).all()
    assert (model.decision_function(X) == expected).all()


INTERRUPTED = """
import random, sys
sys.path.insert(0, {here!r})
from conftest import random_tree
from espalier import Kernel
draw = random.Random(1)
trees = [random_tree(draw, 6) for _ in range(2000)]
kernel = Kernel("ptk(algorithm=pair)", threads={threads}, progress=lambda stage, fraction: print(stage, flush=True))
try:
    kernel(trees)
except KeyboardInterrupt:
    print("interrupted", kernel(trees[:2]).shape, flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_an_interruption_ends_a_long_call(threads):
    """It would take minutes; the limit is there for a test that fails."""
    program = INTERRUPTED.format(here=os.path.dirname(__file__), threads=threads)
    # A child inherits it where it is ignored, as in the background.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    assert "computing the kernel\n" in process.stdout
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out.splitlines()[-1] == "interrupted (2, 2)"
    assert process.returncode == 0


def test_progress_is_told_and_may_end_the_call():
    draw = random.Random(1)
    trees = [random_tree(draw, 6) for _ in range(400)]
    seen: list[tuple[str, float]] = []
    Kernel("ptk(algorithm=pair)", threads=1, progress=lambda *told: seen.append(told))(trees)
    assert seen and all(isinstance(stage, str) and fraction <= 1 for stage, fraction in seen)
    fractions = [fraction for stage, fraction in seen if stage == "computing the kernel"]
    assert fractions and fractions == sorted(fractions)

    def refuse(stage: str, fraction: float) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        Kernel("ptk(algorithm=pair)", threads=1, progress=refuse)(trees)


def test_memory_is_given_back(questions):
    resource = pytest.importorskip("resource")
    X, y = questions
    for _ in range(20):
        SVC().fit(X, y).predict(X)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        SVC().fit(X, y).predict(X)
        with pytest.raises(ValueError):
            Kernel("sst")(["(A"])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KB
