"""Python objects as examples."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
import types

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import espalier
from espalier import Kernel
from espalier._core import decode, encode
from espalier._data import to_dataset

SAME = [
    "(S (A a) (B b))",
    espalier.tree(("S", ("A", "a"), ("B", "b"))),
    ["S", ["A", "a"], ["B", "b"]],
    ("S", ("A", "a"), ("B", "b")),
]


def test_trees_in_any_form_may_be_mixed():
    for pair in itertools.product(SAME, repeat=2):
        np.testing.assert_allclose(Kernel("norm(sst)")(list(pair)), 1, rtol=1e-12)


def test_a_list_of_words_among_trees_is_a_tree():
    data = to_dataset([["A", "b"], "(A b)"])
    assert data.columns == {"tree": "tree"}
    assert data.column("tree") == ["(A b)", "(A b)"]
    assert to_dataset([["A", "b"], ["c"]]).columns == {"words": "sequence"}


@pytest.mark.parametrize(
    "token", ["a b", "a|b", "(a", "a\\", "\\", "|", "\t", "\n", "é", "日本", "\U0001f333", "a\xa0b", "\ud800", "\udc80"]
)
def test_any_token_stays_one(token):
    assert Kernel("seq(n=1)")([[token, "x"], [token]])[0, 1] == 1
    assert Kernel("seq(n=2)")([[token]])[0, 0] == 1


@pytest.mark.parametrize("text", ["plain", "é日\U0001f333", "\udc80\udcff", "\ud800", "\udfff\ud800", "a\udce9b"])
def test_text_comes_back_from_bytes(text):
    assert decode(encode(text)) == text


@pytest.mark.parametrize("text", [b"\xff\xfe", b"caf\xe9", b"\xed\xa0\x80", b"\x80"])
def test_bytes_come_back_from_text(text):
    assert encode(decode(text)) == text


def test_every_character_can_be_a_label():
    ordinary = [chr(c) for c in range(1, 0x250) if chr(c) not in "() \\\t\n\r\v\f"] + ["\u2028", "\ufeff", "\U0010ffff"]
    trees = [f"(A {c})" for c in ordinary]
    assert (Kernel("norm(sst)")(trees) == np.eye(len(trees))).all()


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0], [0.5, 0.0]],
        [(1.0, 2.0), np.array([0.5, 0.0])],
        np.array([[1.0, 2.0], [0.5, 0.0]]),
        np.array([[1, 2], [0.5, 0]], dtype=np.float32),
        csr_matrix([[1.0, 2.0], [0.5, 0.0]]),
        [{"0": 1.0, "1": 2}, {"0": 0.5}],
        [{0: 1.0, 1: 2}, {0: np.float64(0.5)}],
    ],
)
def test_vectors(X):
    assert Kernel("linear")(X).tolist() == [[5, 0.5], [0.5, 0.25]]


TREES, WORDS, NUMBERS = ["(A b)", "(A c)"], ["x y", "y"], [1.0, 2.0]


class Column(list):
    def to_list(self):
        return list(self)

    to_pylist = to_list


class Frame(dict):
    """A data frame as pandas and polars have them."""

    @property
    def columns(self):
        return list(self)


COLUMNS: dict[str, list] = {"t": TREES, "w": WORDS, "n": NUMBERS}
TABLES = {
    "list of dicts": [{"t": t, "w": w, "n": n} for t, w, n in zip(TREES, WORDS, NUMBERS)],
    "dict of lists": COLUMNS,
    "frame": Frame(t=Column(TREES), w=Column(WORDS), n=Column(NUMBERS)),
    "arrow": types.SimpleNamespace(column_names=["t", "w", "n"], column=lambda name: Column(COLUMNS[name])),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables(kind):
    data = to_dataset(TABLES[kind])
    assert data.columns == {"t": "tree", "w": "sequence", "n": "vector"}
    assert data[1] == {"t": "(A c)", "w": "y", "n": 2}
    assert Kernel("sst(t, lambda=1) + 10*linear(n)")(TABLES[kind]).tolist() == [[11, 20], [20, 41]]


@pytest.mark.parametrize("library, name", [("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")])
def test_real_tables(library, name):
    table = getattr(pytest.importorskip(library), name)(TABLES["dict of lists"])
    assert Kernel("sst(t, lambda=1) + 10*linear(n)")(table).tolist() == [[11, 20], [20, 41]]
    assert Kernel("sst")(table["t"]).shape == (2, 2)


def test_a_table_of_numbers_is_a_matrix_unless_the_kernel_names_its_columns():
    rows = [{"a": 1, "b": 2}, {"a": 3, "b": 0}]
    assert Kernel("linear")(rows).tolist() == [[5, 3], [3, 9]]
    assert Kernel("linear")(Frame(a=[1, 3], b=[2, 0])).tolist() == [[5, 3], [3, 9]]
    assert Kernel("linear(a)")(Frame(a=[1, 3], b=[2, 0])).tolist() == [[1, 3], [3, 9]]


def test_columns_named_as_targets_are():
    rows = [{"y": "(A b)", "y_": "w"}, {"y": "(A c)", "y_": "w"}]
    assert to_dataset(rows).columns == {"y": "tree", "y_": "sequence"}
    assert to_dataset(rows, ["1", "2"]).target.tolist() == [1, 2]


def test_a_list_takes_the_name_that_the_kernel_has_for_it():
    assert Kernel('sst("my trees", lambda=1)')(TREES).tolist() == [[1, 0], [0, 1]]


def deep_list(levels: int = 100_000) -> list:
    nested: list = ["A", "b"]
    for _ in range(levels):
        nested = ["A", nested]
    return nested


def test_depth_is_no_matter():
    assert Kernel("norm(sst)")([deep_list(), "(A b)"])[0, 0] == 1


def test_a_list_that_is_deep_and_wrong_is_told():
    nested: list = [None]
    for _ in range(100_000):
        nested = ["A", nested]
    with pytest.raises(ValueError, match=r"X\[0\]"):
        Kernel("sst")([nested])


BAD = {
    "nothing": ([], "X has no examples"),
    "None": (None, "X is None; a list of examples is needed"),
    "a number": (3, "X is an int; a list"),
    "None inside": (["(A b)", None], r"X\[1\] is None; an example is a tree, a sequence or a vector"),
    "bytes": ([b"(A b)"], r"X\[0\] is a bytes"),
    "numbers": ([1, 2], r"X\[0\] is a number"),
    "an array of numbers": (np.zeros((2, 2, 2)), "3 dimension"),
    "complex numbers": (np.zeros((2, 2), dtype=complex), "Complex data not supported"),
    "no features": (np.zeros((2, 0)), "0 feature"),
    "tree and number": (["(A b)", 3], r"X\[0\] is a bracket string, but X\[1\] is an int; all examples"),
    "tree and vector": (["(A b)", [1.0, 2.0]], r"X\[1\] is a list of numbers; all examples"),
    "tree and word": (["(A b)", "word"], r"X\[1\]: field 'tree' holds trees"),
    "tree and bool": (["(A b)", True], r"X\[1\] is a bool"),
    "tree and object": (["(A b)", object()], r"X\[1\] is an object"),
    "broken tree": (["(A b)", "(A"], r"X\[1\]: .*closing brackets missing: 1"),
    "two trees": (["(A b) (C d)"], r"X\[0\]: "),
    "NUL": (["(A \0)"], r"X\[0\]: .*NUL"),
    "empty token": ([["a", ""]], r"X\[0\]: a token is an empty string"),
    "NaN": ([[1.0, float("nan")]], r"X\[0\]: a value is NaN"),
    "infinite": (np.array([[1.0], [np.inf]]), r"X\[1, 0\] is inf"),
    "lengths of vectors": ([[1.0], [1.0, 2.0]], r"X\[1\]"),
    "rows": ([{"t": "(A b)"}, {"u": "(A b)"}], r"the columns of X\[1\] are u; those of X\[0\] are t"),
    "row and tree": ([{"t": "(A b)"}, "(A b)"], r"X\[0\] is a row of named columns, but X\[1\] is a bracket string"),
    "lengths of columns": ({"t": ["(A b)"], "w": ["x", "y"]}, "different lengths: 1, 2"),
    "None in a column": ({"t": ["(A b)", None]}, r"X\['t'\]\[1\] is None"),
    "a string": ("(A b)", "a list of examples is needed"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_examples_are_told(what):
    X, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        to_dataset(X)


def test_a_missing_column_is_told():
    with pytest.raises(ValueError, match="there is no column 'tree'; the data have t"):
        Kernel("sst(tree)")({"t": TREES, "w": WORDS})


def test_reading_a_file(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text('{"y": "a", "t": "(A b)", "x": [1, 2]}\n{"y": "b", "t": "(A c)", "x": [0, 1]}\n')
    data = espalier.read(path)
    assert (len(data), data.columns, data.target.tolist()) == (2, {"t": "tree", "x": "vector"}, ["a", "b"])
    assert data[-1] == {"t": "(A c)", "x": [0, 1]}
    assert [example["t"] for example in data[0:2]] == data.column("t") == ["(A b)", "(A c)"]
    with pytest.raises(IndexError):
        data[2]
    with pytest.raises(ValueError, match=r"by its number, not by a string; column\('t'\) gives a column"):
        data["t"]
    with pytest.raises(ValueError, match="by its number, not by a float"):
        data[0.5]
    assert Kernel("linear")(data).tolist() == [[5, 2], [2, 1]]
    # A Dataset with targets of its own is written anew.
    assert to_dataset(data, ["1", "2"]).columns == data.columns
    path.write_text('{"y": "a", "n": 1}\n{"y": "b", "n": 2.5}\nnonsense\n')
    numbers = espalier.read(path, skip_bad=True)
    assert numbers.bad_count == 1 and ":3:1:" in (numbers.first_bad or "")
    assert to_dataset(numbers, ["1", "2"]).columns == {"n": "vector"} and numbers[1] == 2.5
    with pytest.raises(ValueError, match="data.jsonl:1:1: the target 'z' is missing"):
        espalier.read(path, target="z")
    with pytest.raises(FileNotFoundError, match="no such file|No such file"):
        espalier.read(tmp_path / "none")
    with pytest.raises(ValueError, match="the format is 'xml'") as refused:
        espalier.read(path, format="xml")
    # The names come from the library: each is one that it takes.
    names = re.split(", | and ", str(refused.value).partition("there are ")[2])
    assert names[:2] == ["auto", "jsonl"] and len(names) > 7
    for name in names:
        with pytest.raises(ValueError, match="data.jsonl:"):
            espalier.read(path, format=name)


def test_datasets_are_pickled(tmp_path):
    rows = [{"t": "(A b)", "w": "x|f \\(y", "n": 1.1}, {"t": "", "w": "(z", "n": 1e-300}]
    for targets in (None, ["1", "2.5"], ['"a b"', '"1"']):
        data = to_dataset(rows, targets)
        again = pickle.loads(pickle.dumps(data))
        assert list(again) == list(data) and again.columns == data.columns and again.target_name == data.target_name
        assert str(again.target) == str(data.target) and str(again.classes) == str(data.classes)
        assert copy.deepcopy(data) is copy.copy(data) is data
    named = to_dataset([{"y": "(A b)"}])
    assert pickle.loads(pickle.dumps(named)).columns == {"y": "tree"}


def test_datasets_of_files_are_pickled(tmp_path):
    (tmp_path / "a.svm").write_text("+1 1:0.5 3:0.1\n-1 2:3\n.5 1:1e-300\n1 2:bad\n")
    data = espalier.read(tmp_path / "a.svm", skip_bad=True)
    again = pickle.loads(pickle.dumps(data))
    assert again.target.tolist() == data.target.tolist() == [1, -1, 0.5]
    assert (again.bad_count, again.first_bad) == (data.bad_count, data.first_bad) and data.bad_count == 1
    assert (Kernel("linear")(again) == Kernel("linear")(data)).all()
    (tmp_path / "b.jsonl").write_bytes(b'{"y": "\xff", "tree": "(A \xfe)"}\n')
    data = espalier.read(tmp_path / "b.jsonl")
    again = pickle.loads(pickle.dumps(data))
    assert again[0] == data[0] and again.target.tolist() == data.target.tolist()
