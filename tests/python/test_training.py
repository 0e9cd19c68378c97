"""What estimators learn from: files, datasets and iterators give what lists give."""

from __future__ import annotations

import gc
import gzip
import json
import re
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import espalier
from espalier import SVC, SVR, DagPerceptron, GPClassifier, GPRegressor, OneClassSVM

CLASSIFIERS = [SVC(C=10, probability=True), DagPerceptron(kernel="norm(sst)"), GPClassifier(max_iterations=3)]
REGRESSORS = [SVR(), GPRegressor(max_iterations=3)]
LEARNERS = [*CLASSIFIERS, *REGRESSORS]


def name_of(estimator: Any) -> str:
    return type(estimator).__name__


def write(path: Path, X: list, y: list, target: str = "y") -> Path:
    lines = "".join(json.dumps({target: label, "tree": tree}) + "\n" for tree, label in zip(X, y, strict=True))
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())
    return path


def targets_for(estimator: Any, labels: list[str]) -> list:
    return [float(len(label) + i % 5) for i, label in enumerate(labels)] if estimator in REGRESSORS else labels


def assert_same(one: Any, other: Any, X: Any) -> None:
    assert one.model_.to_bytes() == other.model_.to_bytes()
    assert (one.predict(X) == other.predict(X)).all()
    assert one.predict(X).dtype == other.predict(X).dtype
    if hasattr(one, "decision_function"):
        assert (one.decision_function(X) == other.decision_function(X)).all()
    if hasattr(one, "classes_"):
        assert one.classes_.tolist() == other.classes_.tolist() and one.classes_.dtype == other.classes_.dtype


# --------------------------------------------------------------------- files


@pytest.mark.parametrize("estimator", LEARNERS, ids=name_of)
def test_a_file_is_as_lists(estimator, questions, tmp_path):
    X, y = questions[0], targets_for(estimator, questions[1])
    from_lists = clone(estimator).fit(X, y)
    path = write(tmp_path / "train.jsonl.gz", X, y)
    for source in (path, str(path), espalier.read(path)):
        assert_same(clone(estimator).fit(source), from_lists, X)
    path = write(tmp_path / "label.jsonl", X, y, target="label")
    assert_same(clone(estimator).fit(path, "label"), from_lists, X)
    assert_same(clone(estimator).fit(str(path), y="label"), from_lists, X)
    assert_same(clone(estimator).fit(espalier.read(path, target="label")), from_lists, X)


def test_a_file_without_targets_is_enough_for_one_class(questions, tmp_path):
    X, y = questions
    expected = OneClassSVM(nu=0.2).fit(X).decision_function(X)
    bare = tmp_path / "bare.jsonl"
    bare.write_text("".join(json.dumps({"tree": tree}) + "\n" for tree in X))
    for source in (bare, write(tmp_path / "train.jsonl", X, y), espalier.read(bare), iter(X)):
        assert (OneClassSVM(nu=0.2).fit(source).decision_function(X) == expected).all()
    outlying = OneClassSVM(nu=0.2).fit_predict(X)
    assert (OneClassSVM(nu=0.2).fit_predict(iter(X)) == outlying).all()
    assert (OneClassSVM(nu=0.2).fit_predict(bare) == outlying).all()


@pytest.mark.parametrize(
    "texts, classes",
    [
        (["1", "-1", "10"], [-1, 1, 10]),
        (['"1"', '"-1"', '"10"'], ["-1", "1", "10"]),
        (["1.0", "2.00", "1e3"], [1.0, 2.0, 1000.0]),
        (['"b"', '"a"', '"é"'], ["a", "b", "é"]),
    ],
)
@pytest.mark.parametrize("kind", [SVC, DagPerceptron])
def test_classes_of_a_file_are_of_the_type_that_its_target_has(kind, texts, classes, tmp_path):
    path = tmp_path / "train.jsonl"
    trees = ["(S (A a))", "(S (B b))", "(S (C c))"] * 3
    lines = (f'{{"y": {text}, "tree": "{tree}"}}\n' for text, tree in zip(texts * 3, trees, strict=True))
    path.write_text("".join(lines), encoding="utf-8")
    data = espalier.read(path)
    model = kind(kernel="norm(sst)").fit(path)
    assert model.classes_.tolist() == data.classes.tolist() == classes
    assert data.target is not None and model.predict(data).tolist() == data.target.tolist()
    assert model.score(data, data.target) == 1
    assert model.decision_function(data).argmax(axis=1).tolist() == np.searchsorted(classes, data.target).tolist()


def test_labels_of_other_formats(tmp_path):
    path = tmp_path / "train.dat"
    path.write_text("+1 |BT| (A a) |ET|\n-1 |BT| (A b) |ET|\n")
    assert SVC().fit(path).predict(["(A a)", "(A b)"]).tolist() == [1, -1]


def test_bad_files(tmp_path, questions, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = questions
    write(Path("train.jsonl"), X, y)
    Path("bare.jsonl").write_text('{"tree": "(A a)"}\n{"tree": "(A b)"}\n')
    Path("broken.jsonl").write_text('{"y": 1, "tree": "(A a)"}\n{"y": 2, "tree": "(A b"}\n')
    Path("empty.jsonl").write_text("")
    Path("one.jsonl").write_text('{"y": "x", "tree": "(A a)"}\n' * 2)
    no_target = r"bare.jsonl: the data have no target; y= names the field that holds it"
    for estimator in LEARNERS:
        refused(estimator, "missing.jsonl", None, "missing.jsonl: No such file", FileNotFoundError)
        refused(estimator, Path("missing.jsonl"), "label", "missing.jsonl: No such file", FileNotFoundError)
        refused(estimator, "bare.jsonl", None, no_target)
        refused(estimator, espalier.read("bare.jsonl"), None, "requires y to be passed: the data have no target")
        refused(estimator, "train.jsonl", "label", r"the target 'label' is missing; the fields are 'y', 'tree'")
        refused(estimator, "broken.jsonl", None, r"broken.jsonl:2:\d+: the string ends inside a tree")
        refused(estimator, "empty.jsonl", None, "empty.jsonl: no examples")
        refused(estimator, Path("train.jsonl"), [1, 2], "y is a list of numbers, but X is a file")
        refused(estimator, "train.jsonl", [1, 2], "X is a string; a list of examples is needed")
        refused(estimator, "(A a)", None, "requires y to be passed, but the target y is None")
    for estimator in CLASSIFIERS:
        refused(estimator, "one.jsonl", None, "are of class 'x'; a classifier needs two classes at least")
    for estimator in REGRESSORS:
        refused(estimator, "one.jsonl", None, "is 'x'; a regression needs numbers")
    refused(OneClassSVM(), "missing.jsonl", None, "missing.jsonl: No such file", FileNotFoundError)
    refused(OneClassSVM(), "(A a)", None, "X is a bracket string; a list of examples is needed")


def refused(estimator: Any, X: Any, y: Any, sentence: str, kind: type[Exception] = ValueError) -> None:
    """The estimator says so, and stays as it was."""
    estimator = clone(estimator)
    with pytest.raises(kind, match=sentence):
        estimator.fit(X, y)
    with pytest.raises(NotFittedError):
        estimator.predict(["(A a)"])


# ----------------------------------------------------------------- iterators


@pytest.mark.parametrize("estimator", LEARNERS, ids=name_of)
def test_iterators_are_as_lists(estimator, questions):
    X, y = questions[0], targets_for(estimator, questions[1])
    from_lists = clone(estimator).fit(X, y)
    for arguments in ([zip(X, y)], [(pair for pair in zip(X, y))], [iter(X), iter(y)], [iter(X), y], [X, iter(y)]):
        assert_same(clone(estimator).fit(*arguments), from_lists, X)
    assert_same(clone(estimator).fit(map(list, zip(X, y))), from_lists, X)


WORDS = [["who", "is", "it"], "where is it", ["where"], "who"] * 3
VECTORS = np.random.default_rng(1).normal(size=(12, 3))
NAMED = [{"tree": f"(A b{i % 4})", "x": {"n": i % 4}, "y": "word"} for i in range(12)]


@pytest.mark.parametrize(
    "kernel, X",
    [
        ("norm(seq)", WORDS),
        ("norm(seq)", ["", *WORDS[1:]]),
        ("norm(sst)", ["(A b)", ["A", "b"], ("S", ("A", "b")), espalier.tree("(S b)"), "", "(A c)"] * 2),
        ("rbf(gamma=0.1)", list(VECTORS)),
        ("rbf(gamma=0.1)", VECTORS.tolist()),
        ("rbf(gamma=0.1)", [{"a": 1.0, "b": i} for i in range(12)]),
        ("norm(sst(tree)) + linear(x)", NAMED),
        ("norm(sst(parse))", ["(A b)", "(A c)"] * 6),
    ],
)
@pytest.mark.parametrize("y", [list("abca") * 3, [1, 10, 9, 1] * 3, [1.0, 10.0, 9.0, 1.0] * 3, [True, False] * 6])
def test_iterators_of_all_kinds_of_examples(kernel, X, y):
    from_lists = SVC(kernel=kernel).fit(X, y)
    from_iterator = SVC(kernel=kernel).fit(zip(X, y))
    assert (from_iterator.decision_function(X) == from_lists.decision_function(X)).all()
    assert from_iterator.classes_.tolist() == from_lists.classes_.tolist()
    assert from_iterator.predict(X).dtype == from_lists.predict(X).dtype
    arrays = SVC(kernel=kernel).fit(iter(X), iter(np.array(y)))
    assert (arrays.predict(X) == from_lists.predict(X)).all()


def test_a_list_of_targets_beside_an_iterator_may_be_any():
    trees = ["(A a)", "(B b)", "(C c)"]
    assert SVC().fit(iter(trees), [1, 2.0, True]).classes_.tolist() == [1.0, 2.0]


def test_examples_are_not_kept():
    """The text of this many is packed to a few megabytes; as a list they are fifty, with the text of them."""
    count = 200_000

    def examples() -> Iterator[tuple[str, str]]:
        for i in range(count):
            yield f"(S (A a{i % 7}) (B (C c{i % 1000}) (D d{i % 13})))", "few" if i % 7 < 3 else "many"

    tracemalloc.start()
    try:
        model = SVC(solver="rows", max_iterations=5).fit(examples())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.model_.summary["trained-on"] == str(count)
    assert peak < 8e6


BAD: dict[str, tuple[Callable[[], Iterator[Any]], str]] = {
    "empty": (lambda: iter([]), "X has no examples"),
    "no pairs": (lambda: iter(["(A a)", "(A b)"]), r"X\[0\] is a bracket string; without y, a pair of an example and"),
    "a triple": (lambda: iter([("(A a)", 0), ("(A b)", 1, 2)]), r"X\[1\] is a tuple; without y, a pair"),
    "None": (lambda: iter([("(A a)", 0), None]), r"X\[1\] is None; without y, a pair"),
    "no example": (lambda: iter([("(A a)", 0), (None, 1)]), r"X\[1\] is None; an example is a tree, a sequence or"),
    "an object": (lambda: iter([(object(), 0)]), r"X\[0\] is an object; an example is"),
    "a number": (lambda: iter([(1.5, 0)]), r"X\[0\] is a number; an example is"),
    "broken": (lambda: iter([("(A a)", 0), ("(A b", 1)]), r"X\[1\]: the string ends inside a tree"),
    "two kinds": (lambda: iter([("(A a)", 0), ([1.0], 1)]), r"X\[0\] is a bracket string, but X\[1\] is a list of num"),
    "late vector": (lambda: iter([("", 0), ([1.0], 1)]), r"X\[1\]: "),
    "columns": (lambda: iter([({"t": "(A a)"}, 0), ({"u": "(A b)"}, 1)]), r"the columns of X\[1\] are u; those of X\["),
    "a row": (lambda: iter([({"t": "(A a)"}, 0), ("(A b)", 1)]), r"X\[0\] is a row of named columns, but X\[1\] is"),
    "in a column": (lambda: iter([({"t": "(A a)"}, 0), ({"t": None}, 1)]), r"X\['t'\]\[1\] is None; an example is"),
    "no target": (lambda: iter([("(A a)", 0), ("(A b)", None)]), r"y\[1\] is None; every example needs a target"),
    "NaN": (lambda: iter([("(A a)", 0.0), ("(A b)", float("nan"))]), r"y\[1\] is NaN; every example needs a target"),
}


@pytest.mark.parametrize("estimator", LEARNERS, ids=name_of)
@pytest.mark.parametrize("case", BAD)
def test_bad_iterators(estimator, case):
    make, sentence = BAD[case]
    refused(estimator, make(), None, sentence)


@pytest.mark.parametrize(
    "labels, sentence",
    [
        (["x", "x"], "are of class 'x'; a classifier needs two classes at least"),
        ([0, [1]], r"y[1] is a list; a class is a string or a number"),
        ([1, "b"], r"y[1] is of type str, but y[0] of type int; the classes of an iterator must be of one type"),
        ([1, 1.0], r"y[1] is of type float, but y[0] of type int"),
        ([1, True], r"y[1] is of type bool, but y[0] of type int"),
        ([1.0, 0.5], r"y[1] is 0.5; classes are strings or whole numbers"),
        ([1, 2**53 + 1], r"y[1] is 9007199254740993; numbers as classes are at most 2**53"),
    ],
)
def test_bad_classes_of_iterators(labels, sentence):
    for estimator in CLASSIFIERS:
        refused(estimator, zip(["(A a)", "(A b)"], labels), None, re.escape(sentence))
        refused(estimator, iter(["(A a)", "(A b)"]), iter(labels), re.escape(sentence))


@pytest.mark.parametrize(
    "number, sentence", [("x", "is no number; a regression needs numbers"), (float("inf"), "is inf; targets must be")]
)
def test_bad_numbers_of_iterators(number, sentence):
    for estimator in REGRESSORS:
        refused(estimator, zip(["(A a)", "(A b)"], [1, number]), None, rf"y\[1\] {sentence}")


def test_iterators_that_do_not_end_together():
    trees = ["(A a)", "(B b)", "(C c)"]
    for estimator in LEARNERS:
        refused(estimator, iter(trees), iter([0, 1]), "y ends after 2, but X goes on; every example needs a target")
        refused(estimator, iter(trees[:2]), [0, 1, 0], "X ends after 2, but y goes on; every example needs a target")
        refused(estimator, iter(trees), "label", "y has 0 dimensions; one target for each example is needed")


@pytest.mark.parametrize("estimator", [*LEARNERS, OneClassSVM()], ids=name_of)
def test_what_an_iterator_raises_is_raised(estimator):
    class Held:
        pass

    kept: list[weakref.ref[Held]] = []

    def examples() -> Iterator[Any]:
        held = Held()
        kept.append(weakref.ref(held))
        for i in range(5000):
            yield f"(A a{i})" if isinstance(estimator, OneClassSVM) else (f"(A a{i})", i % 2)
        raise LookupError("the source is gone")

    refused(estimator, examples(), None, "the source is gone", LookupError)
    gc.collect()
    assert kept[0]() is None


def test_a_failure_leaves_what_was_learned_before(questions):
    X, y = questions
    model = SVC().fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="X has no examples"):
        model.fit(iter([]))
    assert (model.decision_function(X) == before).all()


def test_rows_of_sparse_matrices_are_refused_one_by_one():
    matrix = csr_matrix(VECTORS)
    with pytest.raises(ValueError, match=r"X\[0\] is a \w+; an example is a tree, a sequence or a vector"):
        SVC(kernel="linear").fit(zip((matrix[i] for i in range(12)), [0, 1] * 6))
