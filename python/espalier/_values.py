"""The values of a column as JSON: which kind they are, by all of them together and by what the kernel takes.

What a column holds is ``"tree"``, ``"sequence"`` or ``"vector"``. ``wants`` is ``"tree"`` or ``"sequence"`` where the
kernel takes nothing else, else an empty string; then the values decide.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from ._trees import Tree, Unit, kind_of, to_brackets

quote = json.JSONEncoder(ensure_ascii=False).encode

# Which kinds of values (see kind_in_column) a column may hold.
ALLOWED = {"tree": {"tree", "text", "words"}, "sequence": {"text", "words"}, "vector": {"vector"}}


def write_column(values: Any, name: str, wants: str = "") -> tuple[str, list[str]]:
    """What a column holds and its values as JSON; ``name`` stands for it in messages."""
    if hasattr(values, "tocsr"):
        return "vector", _sparse_rows(values, name)
    if hasattr(values, "__array__") and not isinstance(values, np.generic):
        values = np.asarray(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "buifc" and not _are_ids(values, wants):
        return "vector", _dense_rows(values, name)
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "OUS":
        values = _only_column(values, name, wants)
    if isinstance(values, (str, bytes, Tree, Unit)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} is {describe(values)}; a list of examples is needed")
    examples = values if isinstance(values, (list, tuple)) else list_of(values)
    if all(issubclass(kind, str) for kind in set(map(type, examples))):
        return _text_column(examples, name, wants)
    return _mixed_column(examples, name, wants)


def _are_ids(values: np.ndarray[Any, Any], wants: str) -> bool:
    """Whether the rows of an array are numbers of tokens."""
    return wants == "sequence" and values.dtype.kind in "ui" and values.ndim == 2


def _only_column(values: np.ndarray[Any, Any], name: str, wants: str) -> np.ndarray[Any, Any]:
    if values.shape[1] == 1:
        return values[:, 0]
    if wants == "tree":
        at = next((i for i, value in enumerate(values[0]) if isinstance(value, Tree)), 0) if len(values) else 0
        raise ValueError(
            f"{name} is an array of {values.shape[1]} columns of objects, but the kernel takes one column of trees: "
            f"{name}[:, {at}]"
        )
    return values


def _text_column(texts: Sequence[str], name: str, wants: str) -> tuple[str, list[str]]:
    first = next((text for text in texts if text), "")
    holds = wants or ("tree" if first.startswith("(") else "sequence")
    if wants == "sequence" and first and all(text.startswith("(") for text in texts if text) and _is_tree(first):
        raise ValueError(
            f"{name}[{texts.index(first)}] is a bracket string, but the kernel takes sequences; "
            "the words of a tree are espalier.tree(x).leaves()"
        )
    if wants == "" or (wants == "tree" and all(text[:1] in ("(", "") for text in texts)):
        return holds, list(map(quote, texts))
    return holds, [write_value(holds, text, name, i) for i, text in enumerate(texts)]


def _is_tree(text: str) -> bool:
    try:
        Tree.from_string(text)
    except ValueError:
        return False
    return True


def _mixed_column(examples: Sequence[Any], name: str, wants: str) -> tuple[str, list[str]]:
    kinds = [kind_in_column(value, name, i, wants) for i, value in enumerate(examples)]
    holds = "vector" if kinds[0] == "vector" else wants or "sequence"
    # A list of words is a tree if it stands among trees.
    if "tree" in kinds or (not wants and any(isinstance(x, str) and x.startswith("(") for x in examples)):
        holds = "tree"
    for i, kind in enumerate(kinds):
        if kind not in ALLOWED[holds]:
            j = next(j for j, other in enumerate(kinds) if other in ALLOWED[holds])
            raise two_kinds(name, j, describe(examples[j]), i, examples[i])
    return holds, [write_value(holds, value, name, i) for i, value in enumerate(examples)]


def two_kinds(name: str, at: int, what: str, other: int, value: Any) -> ValueError:
    return ValueError(
        f"{name}[{at}] is {what}, but {name}[{other}] is {describe(value)}; "
        "all examples of a column must be of one kind: trees, sequences or vectors"
    )


def write_value(holds: str, value: Any, name: str, at: int) -> str:
    """A value of a column that holds trees, sequences or vectors, as JSON."""
    try:
        return _tree(value) if holds == "tree" else _vector(value) if holds == "vector" else _sequence(value)
    except ValueError as error:
        raise ValueError(f"{name}[{at}]: {error}") from None


def kind_in_column(value: Any, name: str, at: int, wants: str = "") -> str:
    """What a value is: ``"text"``, ``"words"``, ``"vector"`` or ``"tree"``."""
    if isinstance(value, str):
        return "text"
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if type(value) in (list, tuple) and wants == "sequence" and value and all(map(_is_token, value)):
        return "words"
    if wants == "tree" and isinstance(value, Mapping) and value:
        return "tree"  # a document, though it may have numbers only
    if is_vector(value):
        return "vector"
    if type(value) in (list, tuple) and all(isinstance(item, str) for item in value):
        return "words"
    if value is None or isinstance(value, (bytes, bool, np.bool_)) or kind_of(value) is None:
        raise ValueError(f"{name}[{at}] is {describe(value)}; an example is a tree, a sequence or a vector")
    return "tree"


def _is_token(value: Any) -> bool:
    """Words, and numbers that stand for them."""
    return isinstance(value, str) or (isinstance(value, Integral) and not isinstance(value, bool))


def is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def is_vector(value: Any) -> bool:
    if type(value) in (list, tuple):
        return bool(value) and all(map(is_number, value))
    if isinstance(value, Mapping):
        return all(map(is_number, value.values()))
    return is_number(value)


def all_numbers(values: Iterable[Any]) -> bool:
    return all(map(is_number, values))


def describe(value: Any) -> str:
    # Never the value itself: its repr may recurse, or fill the screen.
    if value is None:
        return "None"
    if isinstance(value, str):
        return "a bracket string" if value.startswith("(") else "a string"
    article = "an" if type(value).__name__[0] in "aeiouAEIOU" else "a"
    return f"{article} {type(value).__name__}" + (" of numbers" if is_vector(value) and not is_number(value) else "")


def _tree(value: Any) -> str:
    return quote(to_brackets(value) if value != "" else "")


_TO_ESCAPE = re.compile(r"[ \t\n\r\v\f|(\\]")


def _sequence(value: Any) -> str:
    if isinstance(value, str):
        return quote("\\" + value if value.startswith("(") else value)  # what starts with a bracket would be a tree
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if "" in value:
        raise ValueError("a token is an empty string; tokens have at least one character")
    return quote(" ".join(_TO_ESCAPE.sub(r"\\\g<0>", str(token)) for token in value))


def _number(value: Any) -> str:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a value is {_shown(number)}; the values of vectors must be finite")
    return repr(number)


def _shown(number: float) -> str:
    return "NaN" if math.isnan(number) else str(float(number))


def _vector(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{quote(str(key))}:{_number(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ",".join(map(_number, value)) + "]"
    return _number(value)


def _dense_rows(matrix: np.ndarray[Any, Any], name: str) -> list[str]:
    if matrix.ndim != 2:
        raise ValueError(f"{name} is an array of {matrix.ndim} dimension(s); two are needed: examples and features")
    if matrix.dtype.kind == "c":
        raise ValueError(f"{name} is an array of complex numbers. Complex data not supported: real ones are needed")
    if matrix.shape[1] == 0:
        raise ValueError(f"{name} has 0 feature(s) (shape={matrix.shape}) while a minimum of 1 is required.")
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        i, k = wrong[0]
        raise ValueError(f"{name}[{i}, {k}] is {_shown(matrix[i, k])}; the values of vectors must be finite")
    return list(map(json.dumps, matrix.astype(float).tolist()))


def _sparse_rows(matrix: Any, name: str) -> list[str]:
    rows = matrix.tocsr()
    rows.sum_duplicates()
    if not np.isfinite(rows.data).all():
        raise ValueError(f"{name} has values that are NaN or inf; the values of vectors must be finite")

    def row(start: int, end: int) -> Iterator[str]:
        for k in range(start, end):
            yield f'"{rows.indices[k]}":{float(rows.data[k])!r}'

    return ["{" + ",".join(row(a, b)) + "}" for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]


def list_of(values: Any) -> list[Any]:
    """Any column as a list."""
    for method in ("to_list", "tolist"):
        if hasattr(values, method):
            made = getattr(values, method)()
            return made if isinstance(made, list) else [made]
    return list(values)
