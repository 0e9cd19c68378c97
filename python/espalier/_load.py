"""Estimators from model files."""

from __future__ import annotations

import os
from typing import Any

from ._estimators import SVC, SVR, DagPerceptron
from ._model import Model
from ._processes import GPClassifier, GPRegressor


def load(path: str | os.PathLike[str]) -> Any:
    """The estimator of a model file, be it written by :meth:`SVC.save` and its kin or by ``espalier train``.

    A file knows classes by their texts: they are whole numbers if all of them look so, else strings.
    """
    model = Model.read(path)
    process = GPClassifier if model.classes else GPRegressor
    known = {"svm": SVC, "svr": SVR, "perceptron": DagPerceptron, "gp": process}
    if model.learner not in known:
        raise ValueError(f"{os.fspath(path)}: a model learned by {model.learner}, for which there is no estimator")
    estimator = known[model.learner]()
    estimator._adopt(model)
    return estimator
