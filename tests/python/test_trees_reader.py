"""Bracket text through the reader and the writer of the C library: both must agree with Python's, byte for byte."""

from __future__ import annotations

import json
import random

import pytest
from test_trees import random_tree

from espalier._trees import Tree, tree

core = pytest.importorskip("espalier._espalier")


def read(data: bytes, form: str) -> object:
    return core.dataset_parse(data, b"memory", form.encode(), None, 1, 0, None, None)


def texts(data: bytes, form: str, column: int = 0) -> list[str]:
    """A column of trees as the library writes it."""
    dataset = read(data, form)
    count = core.dataset_info(dataset)[0]
    return [core.dataset_text(dataset, column, i).decode() for i in range(count)]


def test_random_trees_by_both_formats() -> None:
    rng = random.Random(7)
    trees = [random_tree(rng, size) for size in range(1, 150)]
    lines = "".join(f"{t}\n" for t in trees)
    assert texts(lines.encode(), "penn") == [str(t) for t in trees]
    rows = "".join(json.dumps({"t": str(t)}) + "\n" for t in trees)
    assert texts(rows.encode(), "jsonl") == [str(t) for t in trees]


def test_random_text_is_read_or_refused_by_both() -> None:
    rng = random.Random(8)
    outcomes = [0, 0]
    for _ in range(5000):
        text = "(" + "".join(rng.choice("()ab \\\\\t") for _ in range(rng.randint(1, 9)))
        try:
            ours: str | None = str(Tree.from_string(text))
        except ValueError:
            ours = None
        try:
            theirs: list[str] | None = texts(json.dumps({"t": text}).encode(), "jsonl")
        except ValueError:
            theirs = None
        assert ([ours] if ours is not None else None) == theirs, text
        outcomes[ours is None] += 1
    assert min(outcomes) > 20


def test_dependencies_are_the_columns_of_conllu() -> None:
    rng = random.Random(9)
    for _ in range(200):
        words = rng.randint(1, 12)
        order = rng.sample(range(1, words + 1), words)
        heads = {word: 0 if k < rng.choice([1, 1, 2]) else rng.choice(order[:k]) for k, word in enumerate(order)}
        text = "".join(
            f"{i}\t{rng.choice(['a', '(', 'b c', chr(92), 'x|y', chr(0xE9)])}\t_\t{rng.choice(['NOUN', '_'])}\t_\t_"
            f"\t{heads[i]}\t{rng.choice(['obj', 'nmod:of'])}\t_\t_\n"
            for i in range(1, words + 1)
        )
        for column, policy in enumerate(("dep", "grct", "lct")):
            assert texts(text.encode(), "conllu", column) == [str(tree(text, policy=policy))]


def test_deep_tree() -> None:
    text = "(a " * 100_000 + "b" + ")" * 100_000
    assert texts(text.encode(), "penn") == [str(Tree.from_string(text))]
