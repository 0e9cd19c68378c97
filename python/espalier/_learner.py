"""What all estimators of learners share: settings as the library takes them, and models in and out."""

from __future__ import annotations

import inspect
import os
import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from . import _espalier
from ._core import Progress, Run, encode
from ._data import Dataset
from ._kernel import Kernel, as_kernel
from ._model import Model
from ._tags import ExampleTags
from ._targets import class_texts, decode_classes, places, weights_of, weights_text
from ._training import bare_data, class_data, is_path, number_data

Array = np.ndarray[Any, Any]

# What scikit-learn calls some of our parameters.
_THEIRS = {
    "n_jobs": "threads",
    "random_state": "seed",
    "max_iter": "max_iterations",
    "tol": "tolerance",
    "verbose": "progress",
}


class Learner(ExampleTags, BaseEstimator):
    """What all learners share: settings, and the model in and out."""

    _learner: str
    _settings: tuple[str, ...]  # the parameters that are settings of the library
    _estimators: ClassVar[list[type[Learner]]] = []  # all that can be fitted, for models that are loaded

    __signature__: ClassVar[inspect.Signature]
    model_: Model
    kernel: str | Kernel
    threads: int
    memory: int
    progress: Progress | None

    def __new__(cls, *arguments: Any, **parameters: Any) -> Any:
        own = cls._get_param_names()
        for name in parameters:
            if name not in own and _THEIRS.get(name) in own:
                raise TypeError(f"{cls.__name__} has no parameter {name!r}; it is called {_THEIRS[name]!r} here")
        return super().__new__(cls)

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "__init__" in cls.__dict__:  # the parameters are those of __init__, not of __new__
            whole = inspect.signature(cls.__init__)
            cls.__signature__ = whole.replace(parameters=list(whole.parameters.values())[1:])
        if "_settings" in cls.__dict__:
            Learner._estimators.append(cls)

    @classmethod
    def _suits(cls, model: Model) -> bool:
        """Whether it can be what has learned this model."""
        return cls._learner == model.learner

    def _run(self) -> Run:
        return Run.of(self.threads, self.memory, self.progress, share=2)

    def _fit_run(self, data: Dataset) -> Run:
        return self._run()

    def _predict_run(self) -> Run:
        return self._run()

    def _pairs(self, **replaced: object) -> list[tuple[bytes, bytes]]:
        """The settings as the library takes them."""
        pairs = []
        for name in self._settings:
            value = replaced.get(name, getattr(self, name))
            pairs.append((encode(name.replace("_", "-")), encode(_setting_text(name, value))))
        return pairs

    def _class_data(self, X: Any, y: Any) -> tuple[Dataset, Array]:
        return class_data(X, y, as_kernel(self.kernel).columns, self._run())

    def _number_data(self, X: Any, y: Any) -> Dataset:
        return number_data(X, y, as_kernel(self.kernel).columns, self._run())

    def _train(self, data: Dataset) -> Model:
        kernel, run = as_kernel(self.kernel), self._fit_run(data)
        kernel._warn(data)
        learner = encode(self._learner)
        model = Model(_espalier.train(learner, kernel._handle, data._handle, self._pairs(), *run))
        end = model.summary.get("end", "")
        if end == "interrupted":
            warnings.warn("interrupted: the model is what was learned so far", stacklevel=3)
        if end.startswith("stopped at the limit"):
            steps = model.summary["iterations"]
            message = f"{end}, {steps}, before it converged; raise max_iterations or tolerance"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        return model

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver, all decision functions together."""
        summary = self._fitted_model().summary
        if "iterations" not in summary:
            raise AttributeError(f"{type(self).__name__} counts no iterations")
        return int(summary["iterations"])

    def _fitted_model(self) -> Model:
        check_is_fitted(self, "model_")
        return self.model_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as a file, which appears complete or not at all; :func:`espalier.load` and the command line
        read it. Parameters that are no settings of the library, such as ``threads``, are not in it."""
        self._fitted_model().save(path)

    def explain(self, x: Any = None, *, label: Any = None, top: int = 20, nodes: bool = True, **options: Any) -> Any:
        """What decided about the example ``x`` or, without one, which features weigh most: an
        :class:`espalier.Explanation` or an :class:`espalier.ModelExplanation`, which draw themselves in notebooks.
        ``label`` is a class, of an example the predicted one unless told; for the others see
        :meth:`espalier.Model.explain`."""
        model = self._fitted_model()
        name = None if label is None else self._class_name(label)
        return model.explain(x, label=name, top=top, nodes=nodes, run=self._run(), **options)

    def _class_name(self, label: Any) -> str:
        """A class as the model knows it."""
        raise ValueError(f"label is {label!r}, but the model has no classes")

    def report(self, X: Any, y: Any, path: str | os.PathLike[str], **options: Any) -> None:
        """Writes a page (HTML) about the model, and about how it does on the examples ``X`` with the targets ``y``
        (either may be None). ``X`` is what ``fit`` takes. Options are ``title``, ``data_name``, ``examples`` and
        ``top``, as in :meth:`espalier.Model.report`."""
        model = self._fitted_model()
        if is_path(X):
            options.setdefault("data_name", os.path.basename(X))
        data = None if X is None else self._report_data(X, y)
        model.report(data, path, run=self._run(), **options)

    def _report_data(self, X: Any, y: Any) -> Dataset:
        own = is_path(X) or (isinstance(X, Dataset) and X.target_name is not None)
        if y is None and not own:
            return self._bare_data(X)
        return self._class_data(X, y)[0] if is_classifier(self) else self._number_data(X, y)

    def _bare_data(self, X: Any) -> Dataset:
        return bare_data(X, as_kernel(self.kernel).columns, self._run())

    def _adopt(self, model: Model) -> None:
        """Becomes the estimator that has learned this model."""
        self.kernel = model.kernel
        for name, text in model.settings.items():
            own = name.replace("-", "_")
            if own in self._settings:
                setattr(self, own, setting_value(_kinds(self._learner).get(name, "whole"), text))
        self.model_ = model


def _setting_text(name: str, value: object) -> str:
    if name == "class_weight":
        return weights_text(value)
    if isinstance(value, (bool, np.bool_)):
        return "1" if value else "0"
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)


def _kinds(learner: str) -> dict[str, str]:
    """What the values of a learner's settings are; the seed, a whole number, is in no table."""
    return {name: kind for own, _, table in _espalier.learners() if own == learner for name, _, _, _, kind in table}


def setting_value(kind: str, text: str) -> object:
    if kind == "weights":
        return weights_of(text)
    if kind == "flag":
        return text == "1"
    if kind == "whole":
        return int(text)
    return float(text) if kind == "number" else text


class Classifier(ClassifierMixin, Learner):
    """What learners of classes share: labels, and scores in scikit-learn's shapes."""

    classes_: Array

    def _places(self, model: Model) -> Array:
        return places(class_texts(self.classes_), model.classes)

    def predict(self, X: Any) -> Array:
        """The class of each example."""
        model = self._fitted_model()
        return self.classes_[self._places(model)[model.predict(X, "classes", self._predict_run())]]

    def decision_function(self, X: Any) -> Array:
        """The scores of each example: one for each class, in the order of ``classes_``; of two that of the second."""
        model = self._fitted_model()
        scores = model.predict(X, "scores", self._predict_run())
        order = self._places(model)
        if scores.shape[1] == 1:
            return scores[:, 0] if order[1] == 1 else -scores[:, 0]
        return _in_order(scores, order)

    def _class_name(self, label: Any) -> str:
        model, own = self._fitted_model(), self.classes_.tolist()
        if label not in own:
            raise ValueError(f"label is {label!r}; the classes are {', '.join(map(repr, own))}")
        name: str = model.classes[self._places(model).tolist().index(own.index(label))]
        return name

    def _chances(self, X: Any) -> Array:
        model = self._fitted_model()
        chances = model.predict(X, "probabilities", self._predict_run())
        if chances.size and chances[0, 0] < 0:
            raise ValueError("the model was trained without probabilities; fit it again with probability=True")
        return _in_order(chances, self._places(model))

    def _adopt(self, model: Model) -> None:
        super()._adopt(model)
        self.classes_ = decode_classes(model.classes)


def _in_order(columns: Array, order: Array) -> Array:
    """Columns in the library's order put into ours."""
    if np.array_equal(order, np.arange(len(order))):
        return columns
    out = np.empty_like(columns)
    out[:, order] = columns
    return out
