"""Kernels for the Gaussian processes of scikit-learn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import GenericKernelMixin, Hyperparameter
from sklearn.gaussian_process.kernels import Kernel as ProcessKernel

from . import _espalier
from ._core import Progress, decode
from ._kernel import Kernel

Array = np.ndarray[Any, Any]
Bounds = Mapping[str, tuple[float, float] | str]

_OWN = ("expression", "bounds_by_name", "threads", "memory", "progress")

# Where the values of a kernel grow exponentially with a parameter, it has a smaller upper bound than others.
_MOST = {"lambda": 1.0, "lambda1": 1.0, "lambda2": 1.0, "mu": 1.0, "terminal": 10.0}
_TOO_LARGE = 1e300


class GPKernel(GenericKernelMixin, ProcessKernel):
    """A kernel expression as a kernel of ``sklearn.gaussian_process``, for lists of trees, sequences or vectors.

    Its hyperparameters are the numbers of the expression that can be learned, by the names of docs/gp.md: ``"lambda"``,
    ``"lambda.NP"``, ``"sst(src).lambda"``, ``"weight"``. They have bounds, which ``bounds_by_name`` can replace:
    ``{"lambda": (0.01, 2), "alpha": "fixed"}``. ``lambda`` and ``mu`` are at most 1 otherwise: beyond, values grow
    exponentially with the size of trees. Kernels can be added and multiplied with those of scikit-learn, such as
    ``WhiteKernel``.

    A step of the optimiser to where the gradient does not fit a number gets a likelihood so low that the optimiser
    turns back. Where it starts or ends at such values, that is an ``espalier.RangeError``, a ``ValueError``.

    A gradient is a matrix of all pairs for each hyperparameter, so that this is for some hundred examples;
    :class:`espalier.GPRegressor` learns the same without these matrices. ``threads``, ``memory`` and ``progress`` are
    as in :class:`espalier.Kernel`.

    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import WhiteKernel
    >>> from espalier import GPKernel
    >>> kernel = GPKernel("1*norm(sst(lambda=0.4))") + WhiteKernel(0.1)
    >>> trees = ["(S (A a))", "(S (A b))", "(S (C c))", "(S (C d))"]
    >>> GaussianProcessRegressor(kernel, normalize_y=True).fit(trees, [1.0, 1.2, 3.9, 4.1]).predict(["(S (A c))"]).shape
    (1,)
    """

    def __init__(
        self,
        expression: str = "1*norm(sst)",
        *,
        bounds_by_name: Bounds | None = None,
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.expression = expression
        self.bounds_by_name = bounds_by_name
        self.threads = threads
        self.memory = memory
        self.progress = progress
        self._check()

    _parsed: Kernel | None = None

    @property
    def _kernel(self) -> Kernel:
        kernel = self._parsed
        if kernel is None or kernel.expression != self.expression:
            kernel = self._parsed = Kernel(self.expression)
        kernel.threads, kernel.memory, kernel.progress = self.threads, self.memory, self.progress
        return kernel

    def _table(self) -> list[tuple[str, float, float, float]]:
        """Names, values and bounds of all hyperparameters."""
        table = _espalier.hyperparameters(self._kernel._handle)
        return [(decode(name), value, low, high) for name, value, low, high in table]

    def _check(self) -> None:
        names = [name for name, *_ in self._table()]
        for name, bounds in (self.bounds_by_name or {}).items():
            if name not in names:
                raise ValueError(
                    f"bounds_by_name names {name!r}, which is no hyperparameter; there are {', '.join(names) or 'none'}"
                )
            if isinstance(bounds, str):
                good = bounds == "fixed"
            else:
                good = len(bounds) == 2 and 0 < bounds[0] <= bounds[1]
            if not good:
                raise ValueError(f"the bounds of {name!r} are {bounds!r}; allowed are two numbers > 0, or 'fixed'")

    # --------------------------------------------------- hyperparameters

    @property
    def hyperparameters(self) -> list[Any]:
        """As scikit-learn lists them."""
        own = self.bounds_by_name or {}
        return [
            Hyperparameter(name, "numeric", own.get(name, (min(low, value), max(min(high, _most(name)), value))))
            for name, value, low, high in self._table()
        ]

    def _free(self) -> list[int]:
        return [i for i, hyperparameter in enumerate(self.hyperparameters) if not hyperparameter.fixed]

    @property
    def theta(self) -> Array:
        """The logarithms of the values that are not fixed."""
        table = self._table()
        return np.log([table[i][1] for i in self._free()])

    @theta.setter
    def theta(self, theta: Array) -> None:
        table, free = self._table(), self._free()
        if len(theta) != len(free):
            raise ValueError(f"theta has {len(theta)} entries; there are {len(free)} values that are not fixed")
        values = np.array([value for _, value, _, _ in table])
        for i, new in zip(free, np.exp(theta), strict=True):
            # The exponential of a bound's logarithm may be beyond it by rounding.
            near = [bound for bound in table[i][2:] if abs(new - bound) <= 1e-12 * bound]
            values[i] = near[0] if near else new
        self._set_values(values)

    def _set_values(self, values: Array) -> None:
        self.expression = decode(_espalier.kernel_text(_espalier.kernel_with_values(self._kernel._handle, values)))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and, if ``deep``, the hyperparameters by name."""
        params: dict[str, Any] = {name: getattr(self, name) for name in _OWN}
        if deep:
            params.update((name, value) for name, value, _, _ in self._table())
        return params

    def set_params(self, **params: Any) -> GPKernel:
        """Changes some of them; the expression first, if it is among them."""
        for name in _OWN:
            if name in params:
                setattr(self, name, params[name])
        table = self._table()
        values = {name: value for name, value, _, _ in table}
        for name, value in params.items():
            if name not in _OWN and name not in values:
                raise ValueError(f"{self!r} has no parameter {name!r}; there are {', '.join([*_OWN, *values])}")
            if name not in _OWN:
                values[name] = value
        if not params.keys() <= set(_OWN):
            self._set_values(np.array(list(values.values()), dtype=float))
        self._check()
        return self

    # ------------------------------------------------------------- values

    _climbed = False  # a gradient was computed: the next is that of a step
    _refused: tuple[str, ValueError] | None = None  # the expression of a step whose gradient was too large, and why

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        kernel = self._kernel
        if not eval_gradient:
            if self._refused is not None and self._refused[0] == self.expression:
                raise self._refused[1]  # the optimiser has ended there: the likelihood was made up
            return kernel._gram(X, None if Y is X else Y)
        if Y is not None:
            raise ValueError("Gradient can only be evaluated when Y is None.")
        data, table, free = kernel.dataset(X), self._table(), self._free()
        gradient = np.empty((len(data), len(data), len(table)))
        try:
            _espalier.gram_gradient(kernel._handle, data._handle, gradient, *kernel._run())
            values = kernel._gram(data, None)
        except _espalier.RangeError as error:
            if not self._climbed:
                raise
            # Not infinite: from there L-BFGS-B would not come back.
            self._refused = self.expression, error
            return _TOO_LARGE * np.eye(len(data)), np.zeros((len(data), len(data), len(free)))
        self._climbed = True
        gradient *= [value for _, value, _, _ in table]  # by the logarithms
        return values, gradient if len(free) == len(table) else gradient[:, :, free]

    def diag(self, X: Any) -> Array:
        """The value of each example with itself."""
        return self._kernel.diag(X)

    def is_stationary(self) -> bool:
        """Values depend on more than the difference of two examples, which trees do not have."""
        return False

    def __repr__(self) -> str:
        return f"GPKernel({self.expression!r})"


def _most(name: str) -> float:
    """The upper bound of a hyperparameter, be it ``"mu"``, ``"lambda.NP"`` or ``"sst(src)#2.lambda"``."""
    found = re.match(r"(?:\w+\(.*?\)(?:#\d+)?\.)?(\w+)", name)
    return _MOST.get(found[1], np.inf) if found else np.inf
