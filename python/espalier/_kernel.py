"""Kernels for Python and scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _espalier
from ._code import Code
from ._core import Progress, Run, decode, encode
from ._data import Dataset, to_dataset
from ._expression import Columns, Scan, read_value, replace, scan, write_value
from ._tags import ExampleTags
from ._trees import Tree, Unit

Array = np.ndarray[Any, Any]


class Kernel:
    """A kernel expression (docs/kernels.md) as a function of examples.

    ``K(X)`` is the Gram matrix of a list of examples, ``K(X, Y)`` that of two lists, ``K.diag(X)`` the values of each
    example with itself. Of two single examples the value is a number. A kernel can be given to scikit-learn wherever
    that takes a function, such as ``sklearn.svm.SVC(kernel=K)``.

    ``K(X, Y, out=array)`` writes into an array of float64 or float32, such as a ``numpy.memmap``, which may be larger
    than memory; ``K(X, Y, dtype="float32")`` makes one of half the size. ``norm(...)`` of equal examples is exactly 1,
    and never more.

    The numbers of the expression are parameters by name, for :meth:`set_params` and for grids (``"kernel__lambda"``):
    those of kernels as they are called, weights ``weight``, exponents ``power``. What several kernels have is named
    with its kernel and column, ``"sst(src).lambda"`` and ``"sst(tgt).lambda"``, or ``"sst()#1.lambda"`` and
    ``"sst()#2.lambda"`` where these are the same; ``"lambda"`` then sets all of them. Several weights are
    ``"weight.1"`` and ``"weight.2"``. These are the names that the command line uses, too. :meth:`parameters` lists
    them with their ranges.

    Kernels add and multiply: ``K1 + 0.5*K2``, ``K1*K2``, ``K1**2``. Equal ones have the same full text.

    ``threads``: 0 is one per core; results never depend on it. ``memory``: bytes that a result may take, 0 for what the
    machine has. ``progress``: a function of the stage and the fraction that is done, called now and then.

    >>> from espalier import Kernel
    >>> K = Kernel("norm(sst(lambda=0.4))")
    >>> K(["(S (A a) (B b))", "(S (A a) (B c))"]).round(3)
    array([[1.   , 0.606],
           [0.606, 1.   ]])
    >>> K.set_params(**{"lambda": 0.1}).get_params()["lambda"]
    0.1
    """

    def __init__(self, expression: str, *, threads: int = 0, memory: int = 0, progress: Progress | None = None) -> None:
        self.threads = threads
        self.memory = memory
        self.progress = progress
        self._set(expression)

    def _set(self, expression: str) -> None:
        if not isinstance(expression, str):
            raise ValueError(f"a kernel expression is a string, not a {type(expression).__name__}")
        if "\0" in expression:
            raise ValueError("the kernel expression has a NUL character")
        self._handle = _espalier.kernel_parse(encode(expression))
        self.expression = expression

    @property
    def text(self) -> str:
        """The expression in full, with all parameters."""
        return decode(_espalier.kernel_text(self._handle))

    @property
    def columns(self) -> Columns:
        """The columns that the expression names."""
        return self._scan().columns

    def _scan(self) -> Scan:
        return scan(self.text)

    def _run(self) -> Run:
        return Run.of(self.threads, self.memory, self.progress)

    # ------------------------------------------------------------- values

    def __call__(self, X: Any, Y: Any = None, *, out: Array | None = None, dtype: Any = None) -> Any:
        if out is None and dtype is None and _is_example(X) and (Y is None or _is_example(Y)):
            return float(self._gram([X], None if Y is None or Y is X else [Y])[0, 0])
        return self._gram(X, None if Y is X else Y, out, dtype)

    def _gram(self, X: Any, Y: Any, out: Array | None = None, dtype: Any = None) -> Array:
        run = self._run()
        kind = _precision(out, dtype)
        rows = self.dataset(X)
        cols = None if Y is None else self.dataset(Y, name="Y")
        self._warn(rows)
        shape = len(rows), len(rows if cols is None else cols)
        if out is None:
            _check_size(shape, kind, run.memory)
            out = np.empty(shape, kind)
        else:
            _check_out(out, shape)
            run = run._replace(memory=0)  # it is there already, and may be a file
        second = None if cols is None else cols._handle
        _espalier.gram(self._handle, rows._handle, second, out, kind == np.float32, *run)
        return out

    def diag(self, X: Any) -> Array:
        """The value of each example with itself."""
        run = self._run()
        data = self.dataset(X)
        diagonal = np.empty(len(data))
        _espalier.diagonal(self._handle, data._handle, diagonal, *run)
        return diagonal

    def distance(self, X: Any, Y: Any = None) -> Array:
        """Distances in the feature space of the kernel, sqrt(K(x, x) + K(y, y) - 2 K(x, y)), of all examples of X and
        Y (or X), for estimators with ``metric="precomputed"``."""
        rows = self.dataset(X)
        cols = rows if Y is None else self.dataset(Y, name="Y")
        square = self.diag(rows)[:, None] + self.diag(cols)[None, :] - 2 * self._gram(rows, None if Y is None else cols)
        if Y is None:
            np.fill_diagonal(square, 0)
        distance: Array = np.sqrt(np.maximum(square, 0))
        return distance

    def _warn(self, data: Dataset) -> None:
        """What may be wrong though it can be computed, such as grammar rules that match nothing."""
        text = _espalier.kernel_warning(self._handle, data._handle)
        if text is not None:
            warnings.warn(decode(text).strip(), stacklevel=4)

    def dataset(self, X: Any, *, name: str = "X") -> Dataset:
        """The examples as the library holds them, to be used several times without being converted again."""
        return to_dataset(X, columns=self.columns, run=self._run(), name=name)

    # --------------------------------------------------------- parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor and, if ``deep``, the numbers of the expression by name."""
        params: dict[str, Any] = {
            "expression": self.expression,
            "threads": self.threads,
            "memory": self.memory,
            "progress": self.progress,
        }
        if deep:
            text = self.text
            params.update((name, read_value(text[v.start : v.end])) for name, v in scan(text).values.items())
        return params

    def set_params(self, **params: Any) -> Kernel:
        """Changes some of them; the expression first, if it is among them."""
        own = ("expression", "threads", "memory", "progress")
        if "expression" in params:
            self._set(params["expression"])
        changes = {name: write_value(value) for name, value in params.items() if name not in own}
        if changes:
            self._set(replace(self.text, changes))
        for name in own[1:]:
            if name in params:
                setattr(self, name, params[name])
        return self

    # The full text goes along: where it is read again, files with grammar rules need not be.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.get_params(deep=False), "text": self.text}

    def __setstate__(self, state: dict[str, Any]) -> None:
        expression = state.pop("expression")
        self._set(state.pop("text"))
        self.expression = expression
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return self.expression

    # ------------------------------------------------------------- algebra

    def _with(self, other: Any, form: str) -> Any:
        """A kernel made of this and another, or a number; threads, memory and progress are those of this one."""
        if isinstance(other, Kernel):
            right = f"({other.expression})"
        elif isinstance(other, (int, float, np.integer, np.floating)) and not isinstance(other, bool):
            right = repr(float(other))
        else:
            return NotImplemented
        text = form.format(f"({self.expression})", right)
        return Kernel(text, threads=self.threads, memory=self.memory, progress=self.progress)

    def __add__(self, other: Any) -> Any:
        return self._with(other, "{} + {}") if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return self._with(other, "{} * {}" if isinstance(other, Kernel) else "{1}*{0}")

    def __rmul__(self, other: Any) -> Any:
        return self._with(other, "{1}*{0}")

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, (int, np.integer)) or isinstance(exponent, bool):
            return NotImplemented
        return self._with(1, f"{{}}^{int(exponent)}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self.text == other.text

    def __hash__(self) -> int:  # scikit-learn looks for it among the names of its own
        return hash(self.text)

    def parameters(self) -> list[dict[str, Any]]:
        """The numbers of the expression with ``name``, ``value``, ``default``, the ``range`` that is allowed, and
        ``help``; weights and powers have the last three empty."""
        table = {(kernel, row[0]): row for kernel, _, rows in _espalier.kernels() for row in rows}
        found, text = self._scan(), self.text
        rows = []
        for name, value in found.values.items():
            kernel = found.leaves[value.leaf].kernel if value.leaf >= 0 else ""
            _, default, span, help, _ = table.get((kernel, value.name.partition(".")[0]), ("", "", "", "", ""))
            given = read_value(text[value.start : value.end])
            rows.append({"name": name, "value": given, "default": default, "range": span, "help": help})
        return rows


def _is_example(X: Any) -> bool:
    """Whether it is one example and not a list of them; scikit-learn compares pairs of rows now and then."""
    return isinstance(X, (str, Tree, Unit)) or (isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "iuf")


def _precision(out: Any, dtype: Any) -> np.dtype[Any]:
    if out is not None and not isinstance(out, np.ndarray):
        raise ValueError(f"out is a {type(out).__name__}; allowed is an array of float64 or float32")
    try:
        kind = np.dtype((float if out is None else out.dtype) if dtype is None else dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind not in (np.float64, np.float32):
        what = "dtype" if out is None else "the dtype of out"
        raise ValueError(f"{what} is {kind}; allowed are float64 and float32")
    if out is not None and out.dtype != kind:
        raise ValueError(f"out has the dtype {out.dtype}, but dtype is {kind}")
    return kind


def _check_out(out: Array, shape: tuple[int, int]) -> None:
    if out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}; the matrix has {shape}")
    if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
        raise ValueError("out is read-only, or its rows do not stand one after the other in memory (C order)")


def _check_size(shape: tuple[int, int], kind: np.dtype[Any], limit: int) -> None:
    needed = shape[0] * shape[1] * kind.itemsize
    if limit and needed > limit:
        raise MemoryError(
            f"a Gram matrix of {shape[0]} x {shape[1]} takes {needed / 1e9:.3g} GB; the limit is {limit / 1e9:.3g} GB. "
            "Without it in memory: K(X, out=numpy.memmap(...)), blocks K(X[a:b], X) or espalier.dask.gram; "
            "SVC(solver='folded') or DagPerceptron to learn from all examples; NystroemFeatures for linear models; "
            "Index for the most similar examples"
        )


def as_kernel(kernel: str | Kernel) -> Kernel:
    """The kernel that an estimator was given, be it by its expression."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        return Kernel(kernel)
    raise ValueError(f"kernel is a {type(kernel).__name__}; allowed is an expression or an espalier.Kernel")


def kernels() -> dict[str, str]:
    """The kernels that expressions can be made of, with what they are."""
    return {name: help for name, help, _ in _espalier.kernels()}


class GramTransformer(ExampleTags, TransformerMixin, BaseEstimator):
    """Examples to rows of a Gram matrix: ``fit`` keeps the examples, ``transform`` gives K(X, kept).

    It stands before an estimator with ``kernel="precomputed"`` in a pipeline; cross-validation then divides the
    examples. With ``kernel="precomputed"`` of its own, X is such a matrix already, and cross-validation divides its
    rows and columns.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from espalier import GramTransformer
    >>> model = make_pipeline(GramTransformer(kernel="norm(sst)"), SVC(kernel="precomputed"))
    >>> trees, y = ["(S (A a))", "(S (A b))", "(S (C c))", "(S (C d))"], [0, 0, 1, 1]
    >>> model.fit(trees, y).predict(["(S (A x))"])
    array([0])
    """

    def __init__(self, *, kernel: str | Kernel = "norm(sst)") -> None:
        self.kernel = kernel

    def fit(self, X: Any, y: Any = None) -> GramTransformer:
        """Keeps the examples."""
        if self._is_pairwise():
            self.n_fitted_ = _square(X).shape[0]
            return self
        self.kernel_ = as_kernel(self.kernel)
        self.X_fit_ = list(X) if isinstance(X, (Code, Iterator)) else X
        self._fitted = self.kernel_.dataset(self.X_fit_)
        self.n_fitted_ = len(self._fitted)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """The Gram matrix of the examples, computed as the symmetric one it is."""
        self.fit(X, y)
        return self.transform(X) if self._is_pairwise() else self.kernel_._gram(self._fitted, None)

    def transform(self, X: Any) -> Array:
        """A row for each example of X, a column for each kept one."""
        check_is_fitted(self, "n_fitted_")
        if self._is_pairwise():
            gram = np.asarray(X, dtype=float)
            if gram.ndim != 2 or gram.shape[1] != self.n_fitted_:
                raise ValueError(
                    f"X has the shape {gram.shape}; a row has a value for each of {self.n_fitted_} examples"
                )
            return gram
        if not hasattr(self, "_fitted"):
            self._fitted = self.kernel_.dataset(self.X_fit_)
        return self.kernel_._gram(X, self._fitted)

    def _is_pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """A name for each kept example."""
        check_is_fitted(self, "n_fitted_")
        return np.array([f"gram{i}" for i in range(self.n_fitted_)], dtype=object)

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_fitted", None)
        return state


def _square(X: Any) -> Array:
    gram = np.asarray(X, dtype=float)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(f"X has the shape {gram.shape}; a precomputed matrix has as many rows as columns")
    return gram
