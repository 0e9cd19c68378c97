"""The folds of ``espalier cv`` for cross-validation in scikit-learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from . import _espalier
from ._data import to_dataset
from ._targets import as_list, encode_classes, encode_values

Array = np.ndarray[Any, Any]


class Folds:
    """Divides examples as ``espalier cv --folds N --seed S`` does: classes spread evenly, drawn from the seed.

    It is given as ``cv`` to functions of scikit-learn. Targets that are fractions count as numbers, all others as
    classes.

    >>> from espalier import Folds
    >>> for train, test in Folds(2).split(["(A a)", "(A b)", "(A c)", "(A d)"], [0, 1, 0, 1]):
    ...     print(len(train), len(test))
    2 2
    2 2
    """

    def __init__(self, n_splits: int = 5, *, seed: int = 1) -> None:
        self.n_splits = n_splits
        self.seed = seed

    def numbers(self, y: Any) -> Array:
        """The fold of each example, from 0."""
        values = as_list(y)
        fractions = type_of_target(values) == "continuous"
        targets = encode_values(values) if fractions else encode_classes(values)[2]
        data = to_dataset(np.zeros((len(values), 1)), targets)
        out = np.empty(len(values), dtype=np.int32)
        _espalier.folds(b"svr" if fractions else b"svm", data._handle, self.n_splits, self.seed, out)
        return out

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Training and test examples of each fold, by number."""
        fold = self.numbers(y)
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def __repr__(self) -> str:
        return f"Folds({self.n_splits}, seed={self.seed})"
