"""What the tests of the Python package share: the command-line tool, real data, and random trees."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tool() -> Callable[..., str]:
    """The command-line tool, which gives back its standard output; ESPALIER names another one."""
    path = Path(os.environ.get("ESPALIER", ROOT / "build" / "espalier")).absolute()
    if not path.exists():
        pytest.skip(f"there is no tool {path}")

    def run(*arguments: object) -> str:
        command = [str(path), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real data; ESPALIER_DATA names another one."""
    path = Path(os.environ.get("ESPALIER_DATA", ROOT.parent / "shared" / "data"))
    if not path.exists():
        pytest.skip(f"there is no {path}")
    return path


@pytest.fixture(scope="session")
def questions() -> tuple[list[str], list[str]]:
    """Two classes of small trees that can be told apart, but not by one label."""
    draw = random.Random(7)
    trees, labels = [], []
    for _ in range(120):
        label = draw.choice(("HUM", "LOC"))
        asked = f"(WP who) (V {draw.choice(('is', 'was'))})" if label == "HUM" else "(WRB where) (V is)"
        trees.append(f"(Q {asked} {random_tree(draw, 3)})")
        labels.append(label if draw.random() > 0.05 else "LOC")
    return trees, labels


def random_tree(draw: random.Random, depth: int = 4) -> str:
    """A tree over few labels, so that trees have much in common."""
    if depth == 0 or draw.random() < 0.2:
        return f"({draw.choice('AB')} {draw.choice('abc')})"
    children = " ".join(random_tree(draw, depth - 1) for _ in range(draw.randint(1, 3)))
    return f"({draw.choice('STU')} {children})"
