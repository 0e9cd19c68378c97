"""The learners of the library as estimators of scikit-learn.

Parameters are those of the library's settings with underscores, and common to all: ``kernel``, an expression or a
:class:`espalier.Kernel`; ``threads``, 0 for one per core; ``memory``, bytes that Gram rows or a model learned
online may take, 0 for half of what the machine has; ``progress``, a function of stage and fraction. Results never
depend on the threads.

``fit`` takes three kinds of ``X``:

* a list or a table of examples, with their targets as ``y``;
* a data file, by its path. The library reads it; the targets are in its field ``"y"``, or in the one that ``y`` names.
  A :class:`espalier.Dataset` without ``y`` is used in the same way. Classes are numbers if the file has numbers, else
  strings;
* an iterator of pairs, each an example and its target, or an iterator of examples with ``y``, an iterator or a list.
  Each example is handed on at once and not kept; what a column holds is decided by its first example.

An estimator without targets takes the same without ``y``; an iterator then gives examples, no pairs.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from . import _espalier
from ._core import Progress, Run, encode
from ._data import Dataset, to_dataset
from ._kernel import Kernel, as_kernel
from ._model import Model
from ._tags import ExampleTags
from ._targets import (
    class_texts,
    decode_classes,
    encode_classes,
    merge_classes,
    places,
    weights_of,
    weights_text,
)
from ._training import bare_data, class_data, number_data

Array = np.ndarray[Any, Any]


class _Learner(ExampleTags, BaseEstimator):
    """What all learners share: settings, and the model in and out."""

    _learner: str
    _settings: tuple[str, ...]  # the parameters that are settings of the library
    _estimators: ClassVar[list[type[_Learner]]] = []  # all that can be fitted, for models that are loaded

    model_: Model
    kernel: str | Kernel
    threads: int
    memory: int
    progress: Progress | None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "_settings" in cls.__dict__:
            _Learner._estimators.append(cls)

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
        if model.summary.get("end") == "interrupted":
            warnings.warn("interrupted: the model is what was learned so far", stacklevel=3)
        return model

    def _fitted_model(self) -> Model:
        check_is_fitted(self, "model_")
        return self.model_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as a file, which appears complete or not at all; :func:`espalier.load` and the command line
        read it. Parameters that are no settings of the library, such as ``threads``, are not in it."""
        self._fitted_model().save(path)

    def _adopt(self, model: Model) -> None:
        """Becomes the estimator that has learned this model."""
        self.kernel = model.kernel
        for name, text in model.settings.items():
            own = name.replace("-", "_")
            if own in self._settings:
                setattr(self, own, _setting_value(_kinds(self._learner).get(name, "whole"), text))
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


def _setting_value(kind: str, text: str) -> object:
    if kind == "weights":
        return weights_of(text)
    if kind == "flag":
        return text == "1"
    if kind == "whole":
        return int(text)
    return float(text) if kind == "number" else text


class _Classifier(ClassifierMixin, _Learner):
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


def _has_probabilities(estimator: Any) -> bool:
    if not estimator.probability:
        raise AttributeError("predict_proba is there with probability=True only")
    return True


class SVC(_Classifier):
    """A support vector machine for classes.

    ``C``: the cost of an error. ``positive_weight``: a factor of C for positive examples. ``class_weight``:
    ``"balanced"``, or a dict of factors of C by class. ``multiclass``: ``"ovr"``, one class against the rest, or
    ``"ovo"``, each against each. ``probability``: also learn probabilities, by cross-validation. ``tolerance``: when
    to stop. ``inducing``: learn on features from this many examples, which alone support the model; 0 uses all.
    ``solver``: ``"rows"``, over rows of the Gram matrix; ``"folded"``, without them, for very many examples;
    ``"auto"``, the faster of both. A model does not record it. ``keep_partial``: when interrupted, keep what is
    learned so far, with a warning. ``seed``: of that cross-validation and of the inducing examples. For the others
    see the head of this module.

    >>> from espalier import SVC
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(S (C c) (D d))", "(S (C c) (D e))"]
    >>> model = SVC(kernel="norm(sst(lambda=0.4))", C=10).fit(trees, ["x", "x", "z", "z"])
    >>> model.predict(["(S (A a) (B d))", "(S (C c) (D d))"])
    array(['x', 'z'], dtype='<U1')
    """

    _learner = "svm"
    _settings = (
        "C", "positive_weight", "class_weight", "multiclass", "probability", "tolerance", "inducing", "solver",
        "max_iterations", "no_shrinking", "keep_partial", "seed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        kernel: str | Kernel = "norm(sst)",
        C: float = 1.0,
        positive_weight: float = 1.0,
        class_weight: Any = None,
        multiclass: str = "ovr",
        probability: bool = False,
        tolerance: float = 0.001,
        inducing: int = 0,
        solver: str = "auto",
        max_iterations: int = 10_000_000,
        no_shrinking: bool = False,
        keep_partial: bool = False,
        seed: int = 1,
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.positive_weight = positive_weight
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.probability = probability
        self.tolerance = tolerance
        self.inducing = inducing
        self.solver = solver
        self.max_iterations = max_iterations
        self.no_shrinking = no_shrinking
        self.keep_partial = keep_partial
        self.seed = seed
        self.threads = threads
        self.memory = memory
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> SVC:
        """Learns from examples and their classes: lists, a data file or an iterator (see the head of this module)."""
        data, classes = self._class_data(X, y)
        self.model_ = self._train(data)
        self.classes_ = classes
        return self

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, in the order of ``classes_``."""
        return self._chances(X)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of the probabilities."""
        logarithms: Array = np.log(self._chances(X))
        return logarithms


class SVR(RegressorMixin, _Learner):
    """Support vector regression for numbers.

    ``C``: the cost of an error. ``epsilon``: errors up to this cost nothing. ``tolerance``: when to stop.
    ``inducing``, ``solver``, ``keep_partial`` and ``seed`` as in :class:`SVC`. For the others see the head of this
    module.

    >>> from espalier import SVR
    >>> model = SVR(kernel="norm(sst)", C=10).fit(["(S (A a))", "(S (A b))", "(S (C c))"], [1.0, 1.5, 4.0])
    >>> model.predict(["(S (C c))"]).round(1)
    array([3.9])
    """

    _learner = "svr"
    _settings = (
        "C", "epsilon", "tolerance", "inducing", "solver", "max_iterations", "no_shrinking", "keep_partial", "seed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        kernel: str | Kernel = "norm(sst)",
        C: float = 1.0,
        epsilon: float = 0.1,
        tolerance: float = 0.001,
        inducing: int = 0,
        solver: str = "auto",
        max_iterations: int = 10_000_000,
        no_shrinking: bool = False,
        keep_partial: bool = False,
        seed: int = 1,
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.tolerance = tolerance
        self.inducing = inducing
        self.solver = solver
        self.max_iterations = max_iterations
        self.no_shrinking = no_shrinking
        self.keep_partial = keep_partial
        self.seed = seed
        self.threads = threads
        self.memory = memory
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> SVR:
        """Learns from examples and their numbers: lists, a data file or an iterator."""
        self.model_ = self._train(self._number_data(X, y))
        return self

    def predict(self, X: Any) -> Array:
        """The value of each example."""
        return self._fitted_model().predict(X, "scores", self._run())[:, 0]


class DagPerceptron(_Classifier):
    """A perceptron that sees one example after the other and keeps its trees as one DAG.

    ``epochs``: how often ``fit`` goes through all examples; ``partial_fit`` goes once. ``average``: predict with the
    mean of the weights after each example. ``vote``: predict by a vote of these. ``margin``: learn also from right
    scores that are not above this. ``shuffle``: go through the examples in random order, drawn from ``seed``.
    ``class_weight``: a dict of how much examples change the weights. ``form``: how scores are computed, with the same
    result. For the others see the head of this module.

    ``classes_`` are the classes seen so far, and grow with ``partial_fit``.

    >>> from espalier import DagPerceptron
    >>> model = DagPerceptron(kernel="sst(lambda=0.4)")
    >>> for tree, label in [("(S (A a))", 0), ("(S (B b))", 1), ("(S (A c))", 0), ("(S (B a))", 1)]:
    ...     model = model.partial_fit([tree], [label])
    >>> model.predict(["(S (B b))"])
    array([1])
    """

    _online: Any = None  # the learner, once partial_fit was called
    _model: Model | None = None  # None: to be asked of the learner

    _learner = "perceptron"
    _settings = ("form", "epochs", "average", "vote", "margin", "shuffle", "class_weight", "seed")

    def __init__(
        self,
        *,
        kernel: str | Kernel = "norm(sst)",
        form: str = "dag",
        epochs: int = 1,
        average: bool = False,
        vote: bool = False,
        margin: float = 0.0,
        shuffle: bool = False,
        class_weight: Any = None,
        seed: int = 1,
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.form = form
        self.epochs = epochs
        self.average = average
        self.vote = vote
        self.margin = margin
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.seed = seed
        self.threads = threads
        self.memory = memory
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> DagPerceptron:
        """Learns from examples and their classes, from the beginning: lists, a data file or an iterator."""
        data, classes = self._class_data(X, y)
        if len(classes) < 2:
            raise ValueError(
                f"all examples are of class {classes.tolist()[0]!r}; a classifier needs two classes at least"
            )
        online = _espalier.online_new(b"perceptron", as_kernel(self.kernel)._handle, self._pairs())
        _espalier.online_learn(online, data._handle, *self._run())
        self.model_ = Model(_espalier.online_model(online))
        self.classes_ = classes
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> DagPerceptron:
        """Learns on from some more examples, gone through once. ``classes``, if given, are all that there may be.

        When it is interrupted, the examples learned before that stay learned."""
        new, _, targets = encode_classes(y)
        strange = [] if classes is None else new[~np.isin(new, classes)].tolist()
        if strange:
            raise ValueError(f"y has the class {strange[0]!r}, which is not among classes")
        known = merge_classes(getattr(self, "classes_", new), new)
        data = to_dataset(X, targets, columns=as_kernel(self.kernel).columns, run=self._run())
        if self._online is None:
            self._online = self._resume()
        self._model = None
        self.classes_ = known
        _espalier.online_learn(self._online, data._handle, *self._run())
        return self

    def _resume(self) -> Any:
        pairs = self._pairs(epochs=1)
        if self._model is None:
            return _espalier.online_new(b"perceptron", as_kernel(self.kernel)._handle, pairs)
        return _espalier.online_resume(self._model._handle, pairs, *self._run())

    @property
    def model_(self) -> Model:
        """The model as it stands. A ``ValueError`` before the second class."""
        check_is_fitted(self, "classes_")
        model = self._model
        if model is None:
            model = self._model = Model(_espalier.online_model(self._online))
        return model

    @model_.setter
    def model_(self, model: Model) -> None:
        self._online, self._model = None, model

    def _fitted_model(self) -> Model:
        return self.model_

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        if state.get("_online") is not None:
            state["_model"] = self.model_
        state["_online"] = None
        return state


class OneClassSVM(OutlierMixin, _Learner):
    """A one-class support vector machine: which examples are unlike most. It needs no targets.

    ``nu``: the part of the training examples that may lie outside, about. ``tolerance``: when to stop. ``inducing``,
    ``solver``, ``keep_partial`` and ``seed`` as in :class:`SVC`. For the others see the head of this module.

    >>> from espalier import OneClassSVM
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(S (A c) (B b))", "(S (A b) (B b))"]
    >>> model = OneClassSVM(kernel="norm(sst)", nu=0.5).fit([*trees, "(X y)"])
    >>> model.predict(["(S (A a) (B b))", "(X z)"])
    array([ 1, -1])
    """

    _learner = "oneclass"
    _settings = ("nu", "tolerance", "inducing", "solver", "max_iterations", "no_shrinking", "keep_partial", "seed")

    def __init__(
        self,
        *,
        kernel: str | Kernel = "norm(sst)",
        nu: float = 0.5,
        tolerance: float = 0.001,
        inducing: int = 0,
        solver: str = "auto",
        max_iterations: int = 10_000_000,
        no_shrinking: bool = False,
        keep_partial: bool = False,
        seed: int = 1,
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.tolerance = tolerance
        self.inducing = inducing
        self.solver = solver
        self.max_iterations = max_iterations
        self.no_shrinking = no_shrinking
        self.keep_partial = keep_partial
        self.seed = seed
        self.threads = threads
        self.memory = memory
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> OneClassSVM:
        """Learns from examples: a list, a data file or an iterator. ``y`` is there for pipelines and is not looked
        at."""
        self.model_ = self._train(self._data(X))
        self.offset_ = 0.0
        return self

    def _adopt(self, model: Model) -> None:
        super()._adopt(model)
        self.offset_ = 0.0

    def score_samples(self, X: Any) -> Array:
        """As :meth:`decision_function`: the offset between the two, ``offset_``, is 0."""
        return self.decision_function(X)

    def decision_function(self, X: Any) -> Array:
        """How far each example lies inside; negative for those outside."""
        return self._fitted_model().predict(X, "scores", self._run())[:, 0]

    def predict(self, X: Any) -> Array:
        """1 for examples like most of those it was fitted on, -1 for the others."""
        return np.where(self.decision_function(X) > 0, 1, -1)

    def fit_predict(self, X: Any, y: Any = None, **arguments: Any) -> Array:
        """Learns from examples and says which of them are unlike most: -1, else 1."""
        data = self._data(X)  # once, since an iterator cannot be gone through twice
        return self.fit(data).predict(data)

    def _data(self, X: Any) -> Dataset:
        return bare_data(X, as_kernel(self.kernel).columns, self._run())
