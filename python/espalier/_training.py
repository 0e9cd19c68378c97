"""What estimators learn from: lists and tables with targets beside them, and sources that bring their own targets.

These are data files, datasets that were read from one, and iterators. None of them ever has a Python object for each
example in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from ._code import Code
from ._core import Run
from ._data import Dataset, read, to_dataset
from ._expression import Columns
from ._stream import stream_dataset
from ._targets import Labels, encode_classes, encode_value, encode_values
from ._trees import Unit
from ._values import describe

Array = np.ndarray[Any, Any]

_END = object()


def class_data(X: Any, y: Any, columns: Columns, run: Run) -> tuple[Dataset, Array]:
    """Examples with their classes, and all classes in order."""
    data = _own_targets(X, y, run)
    if data is not None:
        return data, data.classes
    if not _one_by_one(X, y):
        classes, _, targets = encode_classes(y)
        return _beside(X, targets, columns, run), classes
    labels = Labels()
    data = stream_dataset(_pairs(X, y, labels.encode), columns=columns, run=run)
    return data, labels.classes()


def number_data(X: Any, y: Any, columns: Columns, run: Run) -> Dataset:
    """Examples with their numbers."""
    data = _own_targets(X, y, run)
    if data is not None:
        return data
    if not _one_by_one(X, y):
        return _beside(X, encode_values(y), columns, run)
    return stream_dataset(_pairs(X, y, encode_value), columns=columns, run=run)


def bare_data(X: Any, columns: Columns, run: Run) -> Dataset:
    """Examples whose targets, if they have some, do not matter."""
    if is_path(X):
        return read(X, progress=run.progress)
    if isinstance(X, Code):
        X = iter(X)
    if isinstance(X, Iterator):
        return stream_dataset(((example, None) for example in X), columns=columns, run=run)
    return to_dataset(X, columns=columns, run=run)


def is_path(X: Any) -> bool:
    """Whether it names a data file."""
    # A bracket string is more likely a tree where a list of trees was meant.
    return isinstance(X, os.PathLike) or (isinstance(X, str) and not X.startswith("("))


def _own_targets(X: Any, y: Any, run: Run) -> Dataset | None:
    """A source that brings its targets with it; None for all others."""
    if isinstance(X, Dataset) and y is None:
        if X.target_name is None:
            raise ValueError("learning requires y to be passed: the data have no target")
        return X
    if not is_path(X) or not (y is None or isinstance(y, str)):
        if isinstance(X, os.PathLike):
            raise ValueError(f"y is {describe(y)}, but X is a file: y may name the field of its targets, or be None")
        return None
    data = read(X, target=y, progress=run.progress)
    if data.target_name is None:
        raise ValueError(f"{os.fspath(X)}: the data have no target; y= names the field that holds it")
    return data


def _one_by_one(X: Any, y: Any) -> bool:
    return isinstance(X, Iterator) and (y is None or isinstance(y, Iterator))


def _beside(X: Any, targets: list[str], columns: Columns, run: Run) -> Dataset:
    """Examples, be they from an iterator, and targets that are all there."""
    if not isinstance(X, Iterator):
        return to_dataset(X, targets, columns=columns, run=run)
    return stream_dataset(_pairs(X, iter(targets), lambda target, at: target), columns=columns, run=run)


def _pairs(
    X: Iterator[Any], y: Iterator[Any] | None, encode_target: Callable[[Any, int], str]
) -> Iterator[tuple[Any, str]]:
    """Each example with its target as JSON. Without y, X has both."""
    if y is None:
        for at, pair in enumerate(X):
            if not isinstance(pair, (tuple, list)) or len(pair) != 2 or isinstance(pair, Unit):
                raise ValueError(
                    f"X[{at}] is {describe(pair)}; without y, a pair of an example and its target is needed"
                )
            yield pair[0], encode_target(pair[1], at)
        return
    for at, (example, target) in enumerate(zip_longest(X, y, fillvalue=_END)):
        if example is _END or target is _END:
            short, long = ("X", "y") if example is _END else ("y", "X")
            raise ValueError(f"{short} ends after {at}, but {long} goes on; every example needs a target")
        yield example, encode_target(target, at)
