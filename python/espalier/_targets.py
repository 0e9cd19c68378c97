"""Targets for the library, and classes from it.

The library knows classes by their text and has an order of its own for them (numbers by value, others by bytes), which
is not always that of ``numpy.unique``: there "10" comes before "9". So classes are matched by text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

Array = np.ndarray[Any, Any]

_EXACT = 2**53  # whole numbers up to it are different as doubles


def as_list(y: Any, name: str = "y") -> Array:
    """Targets as an array of one dimension, without holes. What is wrong is a ``ValueError``."""
    if y is None:
        raise ValueError(f"learning requires y to be passed, but the target {name} is None")
    if isinstance(y, Iterator):
        y = list(y)
    values = y if isinstance(y, np.ndarray) else np.asarray(y, dtype=_dtype_of(y))
    if values.ndim == 2 and values.shape[1] == 1:
        values = column_or_1d(values, warn=True)
    if values.dtype.kind == "c":
        raise ValueError(f"{name} is of complex numbers. Complex data not supported: real ones are needed")
    if values.ndim != 1:
        raise ValueError(f"{name} has {values.ndim} dimensions; one target for each example is needed")
    for i, value in enumerate(values.tolist()):
        _refuse_hole(value, i, name)
    return values


def _refuse_hole(value: Any, at: int, name: str = "y") -> None:
    if value is None or (isinstance(value, float) and value != value):
        raise ValueError(f"{name}[{at}] is {'None' if value is None else 'NaN'}; every example needs a target")


def _dtype_of(y: Any) -> Any:
    # NumPy would turn the 1 of [1, "a"] into "1"; such a list must not pass for one of strings.
    kinds = {isinstance(value, str) for value in y} if isinstance(y, (list, tuple)) else set()
    return object if len(kinds) == 2 else None


def class_texts(classes: Array) -> list[str]:
    """The text of each class."""
    texts = [_text(label) for label in classes.tolist()]
    if len(set(texts)) < len(texts):
        twice = next(text for i, text in enumerate(texts) if text in texts[:i])
        raise ValueError(f"two classes of y are written {twice!r}; they could not be told apart in a model")
    return texts


def _text(label: Any) -> str:
    if isinstance(label, str):
        return str(label)
    if isinstance(label, (bool, int, float)):
        return str(label)
    raise ValueError(f"a class is a {type(label).__name__}; allowed are strings and numbers")


def encode_classes(y: Any) -> tuple[Array, list[str], list[str]]:
    """The classes of y in order, their texts, and the target of each example as JSON."""
    values = as_list(y)
    try:
        check_classification_targets(values)
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        raise ValueError("y mixes classes that cannot be compared, such as numbers and strings") from None
    texts = class_texts(classes)
    # The library takes equal numbers for one class, and looks at them as doubles.
    numbers = all(not isinstance(label, (str, bool)) for label in classes.tolist())
    numbers = numbers and len(set(map(float, texts))) == len(texts)
    fields = texts if numbers else [json.dumps(text, ensure_ascii=False) for text in texts]
    return classes, texts, [fields[code] for code in codes]


class Labels:
    """Classes that come one by one, each written before the others are known: so all must be of one type."""

    def __init__(self) -> None:
        self._fields: dict[Any, str] = {}
        self._type: type | None = None

    def encode(self, label: Any, at: int) -> str:
        """The class of example ``at`` as JSON."""
        value = label.item() if isinstance(label, np.generic) else label
        kind = next((kind for kind in (str, bool, int, float) if isinstance(value, kind)), None)
        self._type = self._type or kind
        if kind is None or kind is not self._type or value not in self._fields:
            self._check(value, kind, at)
            number = kind in (int, float)
            self._fields[value] = _text(value) if number else json.dumps(_text(value), ensure_ascii=False)
        return self._fields[value]

    def _check(self, value: Any, kind: type | None, at: int) -> None:
        _refuse_hole(value, at)
        if kind is None:
            raise ValueError(f"y[{at}] is a {type(value).__name__}; a class is a string or a number")
        if kind is not self._type and self._type is not None:
            raise ValueError(
                f"y[{at}] is of type {kind.__name__}, but y[0] of type {self._type.__name__}; "
                "the classes of an iterator must be of one type"
            )
        if kind is float and not value.is_integer():
            raise ValueError(f"y[{at}] is {value}; classes are strings or whole numbers")
        if kind is int and abs(value) > _EXACT:  # the library looks at numbers as doubles
            raise ValueError(f"y[{at}] is {value}; numbers as classes are at most 2**53, larger ones can be strings")

    def classes(self) -> Array:
        """All of them in order."""
        classes: Array = np.unique(list(self._fields))
        return classes


def merge_classes(some: Array, more: Array) -> Array:
    """All of them in order."""
    return encode_classes(some.tolist() + more.tolist())[0]


def encode_values(y: Any) -> list[str]:
    """Numbers for a regression, as JSON."""
    values = as_list(y)
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        raise ValueError("y has values that are no numbers; a regression needs numbers") from None
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        raise ValueError(f"y[{wrong[0]}] is {numbers[wrong[0]]}; targets must be finite")
    return list(map(repr, numbers.tolist()))


def encode_value(value: Any, at: int) -> str:
    """The number of example ``at`` as JSON."""
    _refuse_hole(value, at)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"y[{at}] is no number; a regression needs numbers") from None
    if not math.isfinite(number):
        raise ValueError(f"y[{at}] is {number}; targets must be finite")
    return repr(number)


def decode_classes(texts: Sequence[str]) -> Array:
    """Classes of a model that did not come from Python: whole numbers if all of them are, else strings."""
    if all(re.fullmatch(r"-?(0|[1-9]\d{0,17})", text) for text in texts):
        return np.unique(np.array([int(text) for text in texts]))
    return np.unique(np.array(texts, dtype=str))


def places(texts: Sequence[str], order: Sequence[str]) -> Array:
    """For each class of the library its place among ours. A file may write a number in another way: 1e3, 2.50."""
    index: dict[str | float, int] = {text: i for i, text in enumerate(texts)}
    if not all(text in index for text in order):
        index |= {float(text): i for i, text in enumerate(texts)}
    return np.array([index[text] if text in index else index[float(text)] for text in order], dtype=np.int64)


def weights_text(weight: Any) -> str:
    """``class_weight`` as the library takes it."""
    if weight is None or isinstance(weight, str):
        return weight or ""
    try:
        items = [(_text(np.asarray(label).item()), float(value)) for label, value in weight.items()]
    except (AttributeError, TypeError, ValueError):
        raise ValueError("class_weight must be None, 'balanced' or a dict of numbers by class") from None
    for label, _ in items:
        if "," in label:
            raise ValueError(f"class_weight names the class {label!r}; weights of classes with commas cannot be given")
    return ",".join(f"{label}={value!r}" for label, value in items)


def weights_of(text: str) -> Any:
    """The other way round."""
    if text in ("", "balanced"):
        return text or None
    pairs = (entry.rpartition("=") for entry in text.split(","))
    return {label: float(value) for label, _, value in pairs}
