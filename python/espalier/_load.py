"""Estimators from model files."""

from __future__ import annotations

import os
from typing import Any

from ._learner import Learner
from ._model import Model


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator of a model file, be it written by :meth:`SVC.save` and its kin or by ``espalier train``.

    A file knows classes by their texts: they are whole numbers if all of them look so, else strings.
    """
    model = Model.read(path)
    for kind in Learner._estimators:
        if kind._suits(model):
            estimator = kind()
            estimator._adopt(model)
            return estimator
    raise ValueError(f"{os.fspath(path)}: a model learned by {model.learner}, for which there is no estimator")
