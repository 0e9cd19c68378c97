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

from typing import Any

import numpy as np
from sklearn.base import OutlierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from . import _espalier
from ._core import Progress
from ._data import to_dataset
from ._kernel import Kernel, as_kernel
from ._learner import Classifier, Learner
from ._model import Model
from ._targets import encode_classes, merge_classes

Array = np.ndarray[Any, Any]


def _has_probabilities(estimator: Any) -> bool:
    if not estimator.probability:
        raise AttributeError("predict_proba is there with probability=True only")
    return True


class SVC(Classifier):
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


class SVR(RegressorMixin, Learner):
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


class DagPerceptron(Classifier):
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


class OneClassSVM(OutlierMixin, Learner):
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
        self.model_ = self._train(self._bare_data(X))
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
        data = self._bare_data(X)  # once, since an iterator cannot be gone through twice
        return self.fit(data).predict(data)
