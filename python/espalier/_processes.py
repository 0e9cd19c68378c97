"""Gaussian processes, which learn the hyperparameters of their kernel and know how sure they are (docs/gp.md).

``fit`` takes what all estimators take. Parameters are those of the library's settings, and common to both: ``kernel``,
``threads``, ``memory`` and ``progress`` as of all estimators; ``restarts``, further starts from values that are drawn
from ``seed``; ``fix``, names or patterns of hyperparameters that stay as given, and ``tie``, patterns of
those that share one value, each a string as on the command line or a list; ``group``, labels that share their values,
as ``"S,SQ;NP,NN"`` or a list of lists; ``prior``, as ``"lambda=0.4,1"`` or a dict of medians and standard deviations of
the logarithm by name; ``max_iterations``, steps of each run; ``tolerance``, when to stop; ``device``, what does the
algebra of large matrices: ``"cpu"``, ``"cuda"`` for the GPU, or ``"auto"`` for the GPU from 2000 examples on if there
is one. A model does not record it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state

from . import _espalier
from ._core import Progress, Run, decode, encode
from ._data import Dataset, to_dataset
from ._device import check_device, device_for
from ._expression import leaf_name, scan
from ._kernel import Kernel
from ._learner import Classifier, Learner
from ._model import Model

Array = np.ndarray[Any, Any]
Names = str | Sequence[str]
Groups = str | Sequence[Sequence[str]]
Priors = str | Mapping[str, tuple[float, float]]

_LIKELIHOODS = ("log likelihood", "log likelihood bound", "log evidence")  # as the summary of a model calls them


class _Process(Learner):
    """What both share: the settings that name hyperparameters, and what was learned."""

    _learner = "gp"
    _likelihood: str

    fix: Names
    tie: Names
    group: Groups
    prior: Priors
    device: str

    _data: Dataset | None = None  # what it was fitted to, for other values of the hyperparameters

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_data", None)
        return state

    def _run(self) -> Run:
        check_device(self.device)
        return super()._run()

    def _device_run(self, examples: int) -> Run:
        whole = getattr(self, "solver", "") != "iterative"
        return self._run()._replace(device=device_for(self.device, examples, matrix=whole))

    def _fit_run(self, data: Dataset) -> Run:
        inducing = getattr(self, "inducing", 0)
        some = isinstance(inducing, (int, np.integer)) and inducing > 0
        return self._device_run(min(len(data), int(inducing)) if some else len(data))

    def _predict_run(self, examples: int = 0) -> Run:
        """``examples``: those that are drawn jointly, whose matrix is factored too."""
        support = int(self._fitted_model().summary.get("support examples", 0))
        return self._device_run(max(support, examples))

    def _pairs(self, **replaced: object) -> list[tuple[bytes, bytes]]:
        pairs = super()._pairs(
            fix=_join_names(self.fix, "fix"),
            tie=_join_names(self.tie, "tie"),
            group=_join_groups(self.group),
            prior=_join_priors(self.prior),
            **replaced,
        )
        return [(b"likelihood", encode(self._likelihood)), *pairs]

    @property
    def kernel_(self) -> Kernel:
        """The kernel with the values that were learned; ``str(kernel_)`` is its expression."""
        model = self._fitted_model()
        return Kernel(model.kernel, threads=self.threads, memory=self.memory, progress=self.progress)

    @property
    def hyperparameters_(self) -> dict[str, float]:
        """All hyperparameters by name, in the order of the expression; ``noise`` is the last."""
        values = {decode(name): value for name, value, _, _ in _espalier.hyperparameters(self.kernel_._handle)}
        return values | self._noise()

    def _noise(self) -> dict[str, float]:
        lines = decode(_espalier.model_hyperparameters(self._fitted_model()._handle)).split("\n")
        values = (line.split("\t") for line in lines if line.startswith("noise\t"))
        return {name: float(value) for name, value in values}

    @property
    def symbol_weights_(self) -> dict[str, float]:
        """The decay that was learned for each label of ``sasst``, by label; where several kernels have such values,
        labels have the kernel in front. :func:`espalier.plot.symbol_weights` draws it."""
        text = self._fitted_model().kernel
        kernel = scan(text)
        found = [value for value in kernel.values.values() if value.name.startswith("lambda.")]
        several = len({value.leaf for value in found}) > 1
        weights = {}
        for value in found:
            label = value.name.removeprefix("lambda.")
            front = f"{leaf_name(kernel.leaves, value.leaf)}." if several else ""
            weights[front + label] = float(text[value.start : value.end])
        return weights

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """The logarithm of the density of the targets, as they were given, under what was learned; of classes, that of
        Laplace's approximation; with ``inducing``, the bound of it that was raised."""
        summary = self._fitted_model().summary
        return float(next(summary[name] for name in _LIKELIHOODS if name in summary))

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False) -> Any:
        """The log likelihood of the targets, as :attr:`log_marginal_likelihood_value_`, at other values.

        ``theta`` are the logarithms of all values in :attr:`hyperparameters_`, in its order; None stands for those that
        were learned. A noise of 0 is none of them. With ``eval_gradient`` the result is a pair: value, and derivatives
        in ``theta``. Values need the examples of ``fit``, which a copy, a pickled or a loaded estimator has not."""
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_value_
        own = [value for value in self.hyperparameters_.values() if value > 0]
        values = np.array(own) if theta is None else np.exp(np.asarray(theta, dtype=float))
        if values.shape != (len(own),):
            raise ValueError(f"theta has the shape {values.shape}; allowed are {len(own)} numbers, one for each value")
        if self._data is None:
            raise ValueError("log_marginal_likelihood at given values needs the examples, without inducing; fit again")
        kernels = len(_espalier.hyperparameters(self.kernel_._handle))
        kernel = _espalier.kernel_with_values(self.kernel_._handle, values[:kernels].copy())
        out = np.zeros(kernels + 2)
        settings = self._likelihood_pairs(float(values[kernels]) if len(own) > kernels else 0.0)
        _espalier.log_likelihood(
            b"gp", kernel, self._data._handle, settings, eval_gradient, out, *self._fit_run(self._data)
        )
        return (float(out[0]), out[1 : len(own) + 1] * values) if eval_gradient else float(out[0])

    def _likelihood_pairs(self, noise: float) -> list[tuple[bytes, bytes]]:
        """What the likelihood depends on besides the kernel."""
        return [(b"likelihood", encode(self._likelihood))]

    def _draw(self, X: Any, count: int, random_state: Any, latent: bool) -> Array:
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"n_samples is {count!r}; allowed is a whole number > 0")
        if not isinstance(random_state, (int, np.integer)):
            random_state = check_random_state(random_state).randint(2**31)
        if not 0 <= random_state < 2**64:
            raise ValueError(f"random_state is {random_state!r}; allowed is a whole number >= 0 and < 2**64")
        data = to_dataset(X, columns=self._fitted_model()._columns, run=self._run())
        return self.model_.samples(data, int(count), int(random_state), latent, self._predict_run(len(data)))


def _join_names(names: Names, setting: str) -> str:
    if names is None or isinstance(names, str):
        return names or ""
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{setting} is {names!r}; allowed are names or patterns, as a string or a list")
    return ",".join(name.replace(",", r"\,") for name in names)


def _join_groups(groups: Groups) -> str:
    if groups is None or isinstance(groups, str):
        return groups or ""
    if any(isinstance(labels, str) or not all(isinstance(label, str) for label in labels) for labels in groups):
        raise ValueError(f"group is {groups!r}; allowed are lists of labels, or a string such as 'S,SQ;NP,NN'")
    return ";".join(",".join(re.sub(r"([,;\\])", r"\\\1", label) for label in labels) for labels in groups)


def _join_priors(priors: Priors) -> str:
    if priors is None or isinstance(priors, str):
        return priors or ""
    try:
        return ";".join(f"{name}={float(middle)!r},{float(width)!r}" for name, (middle, width) in priors.items())
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f"prior is {priors!r}; allowed is a dict of (median, standard deviation) by name") from None


class GPRegressor(RegressorMixin, _Process):
    """A Gaussian process for numbers: it learns the kernel and predicts with uncertainty.

    ``noise``: the variance of the noise to start from, in units of the standardised targets; 0 for none. ``mean``:
    ``"zero"`` or ``"constant"``. ``standardise``: ``"unit"``, ``"mean"`` or ``"none"``. ``inducing``: so many examples
    stand for all, for data that are too many to be used all at once; 0 uses all. ``solver``: ``"exact"``, with the
    whole Gram matrix; ``"iterative"``, without it, on very many examples; ``"auto"``, what fits and is faster.
    ``residual``, ``probes``, ``solver_rank``, ``solver_iterations``: of the iterative solver; 0 for the second and the
    third: by the number of examples. ``keep_partial``: keep a model whose solver has not converged. For the others see
    the head of this module.

    >>> from espalier import GPRegressor
    >>> trees = ["(S (A a))", "(S (A b))", "(S (C c))", "(S (C d))", "(S (A a) (C c))"]
    >>> model = GPRegressor(kernel="1*norm(sst(lambda=0.4))").fit(trees, [1.0, 1.2, 3.9, 4.1, 2.5])
    >>> mean, std = model.predict(["(S (A d))"], return_std=True)
    >>> sorted(model.hyperparameters_)
    ['alpha', 'lambda', 'noise', 'weight']
    """

    _likelihood = "gaussian"

    @classmethod
    def _suits(cls, model: Model) -> bool:
        return super()._suits(model) and not model.classes

    _settings = (
        "noise", "mean", "standardise", "restarts", "fix", "tie", "group", "prior", "max_iterations", "tolerance",
        "inducing", "solver", "solver_rank", "probes", "residual", "solver_iterations", "keep_partial", "seed",
    )  # fmt: skip

    def __init__(
        self,
        *,
        kernel: str | Kernel = "1*norm(sst)",
        noise: float = 0.1,
        mean: str = "zero",
        standardise: str = "unit",
        restarts: int = 0,
        fix: Names = "",
        tie: Names = "",
        group: Groups = "",
        prior: Priors = "",
        max_iterations: int = 200,
        tolerance: float = 0.0001,
        inducing: int = 0,
        solver: str = "auto",
        solver_rank: int = 0,
        probes: int = 0,
        residual: float = 1e-8,
        solver_iterations: int = 1000,
        keep_partial: bool = False,
        seed: int = 1,
        device: str = "auto",
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.mean = mean
        self.standardise = standardise
        self.restarts = restarts
        self.fix = fix
        self.tie = tie
        self.group = group
        self.prior = prior
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.inducing = inducing
        self.solver = solver
        self.solver_rank = solver_rank
        self.probes = probes
        self.residual = residual
        self.solver_iterations = solver_iterations
        self.keep_partial = keep_partial
        self.seed = seed
        self.device = device
        self.threads = threads
        self.memory = memory
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> GPRegressor:
        """Learns from examples and their numbers. If all numbers are the same there is nothing to learn, which is a
        warning."""
        data = self._number_data(X, y)
        self.model_ = self._train(data)
        self._data = data if self.inducing == 0 else None
        end = self.model_.summary["end"]
        if end.startswith("nothing to learn"):
            warnings.warn(f"{end}; every prediction is that number", stacklevel=2)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, latent: bool = False) -> Any:
        """The mean of each example and, with ``return_std``, its standard deviation, or with ``return_cov`` the
        covariances of all examples: those of the targets, or with ``latent`` of the function without noise."""
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are both set; choose one")
        data = to_dataset(X, columns=self._fitted_model()._columns, run=self._run())
        run = self._predict_run()
        moments = self.model_.predict(data, "moments", run)
        mean = moments[:, 0].copy()
        if return_cov:
            return mean, self.model_.covariance(data, latent, run)
        return (mean, np.sqrt(moments[:, 2 if latent else 1])) if return_std else mean

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0, latent: bool = False) -> Array:
        """Draws from the posterior, jointly for all examples: a row per example, a column per draw. Targets with noise,
        or with ``latent`` the function. A whole number as ``random_state`` is the ``--seed`` of ``espalier predict
        --samples``; None and generators of NumPy are as in scikit-learn."""
        return self._draw(X, n_samples, random_state, latent)

    def _likelihood_pairs(self, noise: float) -> list[tuple[bytes, bytes]]:
        shape = [(b"mean", encode(self.mean)), (b"standardise", encode(self.standardise))]
        return [*super()._likelihood_pairs(noise), *shape, (b"noise", encode(repr(noise)))]

    @property
    def noise_(self) -> float:
        """The variance of the noise that was learned, in units of the standardised targets."""
        return self._noise()["noise"]


class GPClassifier(Classifier, _Process):
    """A Gaussian process for classes: it learns the kernel and predicts probabilities.

    More than two classes have a latent function each, one class against the rest, which share the kernel. For the
    parameters see the head of this module.

    >>> from espalier import GPClassifier
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(S (C c) (D d))", "(S (C c) (D e))"]
    >>> model = GPClassifier(kernel="4*norm(sst(lambda=0.4))", fix="*").fit(trees, ["x", "x", "z", "z"])
    >>> model.predict(["(S (A a) (B d))", "(S (C c) (D d))"])
    array(['x', 'z'], dtype='<U1')
    >>> model.predict_proba(["(S (C c) (D d))"]).round(1)
    array([[0.2, 0.8]])
    """

    _likelihood = "bernoulli"

    @classmethod
    def _suits(cls, model: Model) -> bool:
        return super()._suits(model) and bool(model.classes)

    _settings = ("restarts", "fix", "tie", "group", "prior", "max_iterations", "tolerance", "seed")

    def __init__(
        self,
        *,
        kernel: str | Kernel = "1*norm(sst)",
        restarts: int = 0,
        fix: Names = "",
        tie: Names = "",
        group: Groups = "",
        prior: Priors = "",
        max_iterations: int = 200,
        tolerance: float = 0.0001,
        seed: int = 1,
        device: str = "auto",
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.restarts = restarts
        self.fix = fix
        self.tie = tie
        self.group = group
        self.prior = prior
        self.max_iterations = max_iterations
        self.tolerance = tolerance
        self.seed = seed
        self.device = device
        self.threads = threads
        self.memory = memory
        self.progress = progress

    def fit(self, X: Any, y: Any = None) -> GPClassifier:
        """Learns from examples and their classes."""
        data, classes = self._class_data(X, y)
        self.model_ = self._train(data)
        self._data = data
        self.classes_ = classes
        return self

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Draws classes: latent functions from the posterior, jointly for all examples, and then a class of each from
        the probabilities there. A row per example, a column per draw; ``random_state`` as in :class:`GPRegressor`."""
        drawn = self._draw(X, n_samples, random_state, False).astype(int)
        labels: Array = self.classes_[self._places(self.model_)[drawn]]
        return labels

    def predict_proba(self, X: Any) -> Array:
        """The probability of each class, in the order of ``classes_``, averaged over the uncertainty of the latent
        function."""
        return self._chances(X)

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithms of the probabilities."""
        logarithms: Array = np.log(self._chances(X))
        return logarithms
