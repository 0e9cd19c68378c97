"""Explicit features: patterns that were mined, and Nystroem's approximation of any kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_is_fitted

from . import _espalier
from ._core import Progress, Run, decode, encode
from ._data import to_dataset
from ._kernel import Kernel, as_kernel
from ._tags import ExampleTags
from ._targets import class_texts, encode_classes

Array = np.ndarray[Any, Any]


class Pattern(NamedTuple):
    """A pattern that tells a class from the rest."""

    text: str  # tokens, or a fragment in which (NP ...) is a node without its children
    value: float  # of the metric
    examples: int  # that contain it
    positive: int  # of these, those of the class
    label: Any  # the class


class PatternMiner(ExampleTags, BaseEstimator):
    """Finds the subsequences or tree fragments that one class has more often than chance would have it
    (docs/mining.md).

    ``kernel``: ``fsst(...)`` for trees, ``fseq(...)`` for sequences, or a sum of these. ``metric``: ``"chi2"``,
    ``"gtest"`` or ``"mi"``. ``tau``, ``min_support``, ``max_length``: what to keep; None is what the kernel says.
    ``top``: only the best so many of each class. ``positive``: the class to tell from the rest; None is the second of
    two, or each in turn.

    ``patterns_`` is a list of :class:`Pattern`, class by class and the best first.

    >>> from espalier import PatternMiner
    >>> words = ["where is it", "where was he", "who is it", "who was he"]
    >>> PatternMiner(kernel="fseq", top=1).fit(words, ["LOC", "LOC", "HUM", "HUM"]).patterns_
    [Pattern(text='where', value=4.0, examples=2, positive=2, label='LOC')]
    """

    def __init__(
        self,
        *,
        kernel: str | Kernel = "fsst",
        metric: str = "chi2",
        tau: float | None = None,
        min_support: int | None = None,
        max_length: int | None = None,
        top: int | None = None,
        positive: Any = None,
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.metric = metric
        self.tau = tau
        self.min_support = min_support
        self.max_length = max_length
        self.top = top
        self.positive = positive
        self.threads = threads
        self.memory = memory
        self.progress = progress

    def _run(self) -> Run:
        return Run.of(self.threads, self.memory, self.progress)

    def fit(self, X: Any, y: Any) -> Any:
        """Mines examples and their classes."""
        kernel, run = as_kernel(self.kernel), self._run()
        classes, texts, targets = encode_classes(y)
        data = to_dataset(X, targets, columns=kernel.columns, run=run)
        if self.positive is not None:
            wanted = list(zip([self.positive], class_texts(np.array([self.positive])), strict=True))
        else:
            wanted = list(zip(classes.tolist(), texts, strict=True))[1 if len(classes) == 2 else 0 :]
        self.patterns_: list[Pattern] = []
        for label, text in wanted:
            self.patterns_ += self._mine(kernel, data, label, text, run)
        self.classes_ = classes
        return self

    def _mine(self, kernel: Kernel, data: Any, label: Any, text: str, run: Run) -> list[Pattern]:
        tau = None if self.tau is None else encode(str(self.tau))
        support, length, top = (self._limit(name) for name in ("min_support", "max_length", "top"))
        found = _espalier.mine(
            kernel._handle, data._handle, encode(self.metric), tau, support, length, top, encode(text), *run
        )
        return [Pattern(decode(pattern), value, x, y, label) for pattern, value, x, y in found]

    def _limit(self, name: str) -> int:
        value = getattr(self, name)
        if value is not None and (not hasattr(value, "__index__") or value < 1):
            raise ValueError(f"{name} is {value!r}; allowed is a whole number >= 1, or None")
        return int(value or 0)


class PatternFeatures(TransformerMixin, PatternMiner):
    """Mined patterns as features: ``fit`` mines, ``transform`` gives a sparse matrix with a column per pattern.

    ``values``: ``"count"``, how often a pattern occurs; ``"binary"``, whether it does; ``"kernel"``, the features
    whose dot products are the kernel's values. The kernel is one ``fsst(...)`` or ``fseq(...)``. The rest is as in
    :class:`PatternMiner`; a pattern that several classes have in common is one column.

    >>> from espalier import PatternFeatures
    >>> words = ["where is it", "where was he", "who is it", "who was he"]
    >>> features = PatternFeatures(kernel="fseq(n=1)", max_length=1).fit(words, ["LOC", "LOC", "HUM", "HUM"])
    >>> features.get_feature_names_out()
    array(['where', 'who'], dtype=object)
    >>> features.transform(["where and where", "who"]).toarray()
    array([[2., 0.],
           [0., 1.]])
    """

    def __init__(
        self,
        *,
        kernel: str | Kernel = "fsst",
        values: str = "count",
        metric: str = "chi2",
        tau: float | None = None,
        min_support: int | None = None,
        max_length: int | None = None,
        top: int | None = None,
        positive: Any = None,
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(
            kernel=kernel, metric=metric, tau=tau, min_support=min_support, max_length=max_length, top=top,
            positive=positive, threads=threads, memory=memory, progress=progress,
        )  # fmt: skip
        self.values = values

    def fit(self, X: Any, y: Any) -> Any:
        """Mines examples and their classes."""
        if self.values not in ("count", "binary", "kernel"):
            raise ValueError(f"values is {self.values!r}; allowed are 'count', 'binary' and 'kernel'")
        super().fit(X, y)
        self.names_ = list(dict.fromkeys(pattern.text for pattern in self.patterns_))
        if not self.names_:
            raise ValueError("no pattern was found; a lower tau or min_support lets more pass")
        return self

    def transform(self, X: Any) -> Any:
        """The features of each example, as a ``scipy.sparse`` matrix by rows."""
        from scipy.sparse import csr_matrix

        check_is_fitted(self, "names_")
        run, kernel = self._run(), Kernel(as_kernel(self.kernel).text)
        if self.values != "kernel":
            kernel.set_params(**{"lambda": 1})
        data = to_dataset(X, columns=kernel.columns, run=run)
        patterns = to_dataset(self.names_, name="patterns")
        features = _espalier.features_new(kernel._handle, patterns._handle, data._handle, *run)
        texts, entries = _espalier.features_info(features)
        start, column, value = np.empty(len(data) + 1, np.int64), np.empty(entries, np.int64), np.empty(entries)
        _espalier.features_fill(features, start, column, value)
        if self.values == "binary":
            value[:] = 1.0
        # The library has the patterns in an order of its own.
        index = {name: i for i, name in enumerate(self.names_)}
        place = np.array([index[decode(text)] for text in texts], dtype=np.int64)
        matrix = csr_matrix((value, place[column], start), shape=(len(data), len(self.names_)))
        matrix.sort_indices()
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The texts of the patterns."""
        check_is_fitted(self, "names_")
        return np.array(self.names_, dtype=object)


class NystroemFeatures(ExampleTags, TransformerMixin, BaseEstimator):
    """Features whose dot products approximate a kernel: K(x, landmarks) K(landmarks, landmarks)^(-1/2).

    Landmarks are chosen by randomly pivoted Cholesky (Chen, Epperly, Tropp and Webber 2022): an example is drawn with a
    probability in proportion to what the landmarks so far leave of K(x, x). That takes (``n_components`` + 1) n values
    of the kernel. There are fewer landmarks than ``n_components`` if they leave nothing. ``seed``: of the draw.

    >>> from espalier import Kernel, NystroemFeatures
    >>> trees = ["(S (A a))", "(S (A b))", "(S (C c))"]
    >>> Z = NystroemFeatures(kernel="norm(sst)", n_components=3).fit_transform(trees)
    >>> bool(abs(Z @ Z.T - Kernel("norm(sst)")(trees)).max() < 1e-12)
    True
    """

    def __init__(self, *, kernel: str | Kernel = "norm(sst)", n_components: int = 100, seed: int = 1) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> NystroemFeatures:
        """Chooses the landmarks."""
        if not hasattr(self.n_components, "__index__") or self.n_components < 1:
            raise ValueError(f"n_components is {self.n_components!r}; allowed is a whole number >= 1")
        self.kernel_ = as_kernel(self.kernel)
        X = indexable(X)[0]
        self.component_indices_ = self._choose(X)
        self.components_ = _safe_indexing(X, self.component_indices_)
        self.normalization_ = _inverse_root(self.kernel_(self.components_))
        return self

    def _choose(self, X: Any) -> Array:
        """Pivots are drawn in blocks, as the kernel is faster on many examples at a time than on one."""
        random = np.random.default_rng(self.seed)
        data = self.kernel_.dataset(X)
        rest = self.kernel_.diag(data)  # K(x, x) without what the factor explains
        least = 1e-12 * max(rest.max(), 0.0)
        wanted = min(int(self.n_components), len(data))
        factor = np.empty((len(data), wanted))
        chosen: list[int] = []
        while len(chosen) < wanted and rest.max() > least:
            size = min(max(1, wanted // 10), wanted - len(chosen))
            chance = np.where(rest > least, rest, 0.0)
            drawn = np.unique(random.choice(len(data), size, p=chance / chance.sum()))
            block = self.kernel_(data, _safe_indexing(X, drawn))
            done = factor[:, : len(chosen)]
            block -= done @ done[drawn].T
            for column, pivot in enumerate(drawn):
                # One by one within the block, so that what another of it explains is not taken again.
                if rest[pivot] <= least:
                    continue
                new = block[:, column] / np.sqrt(max(block[pivot, column], least))
                block[:, column + 1 :] -= np.outer(new, new[drawn[column + 1 :]])
                factor[:, len(chosen)] = new
                rest = np.maximum(rest - new**2, 0.0)
                rest[pivot] = 0.0
                chosen.append(int(pivot))
        if not chosen:
            raise ValueError("the kernel of every example with itself is 0; there is nothing to approximate")
        return np.array(chosen)

    def transform(self, X: Any) -> Array:
        """The features of each example."""
        check_is_fitted(self, "normalization_")
        features: Array = self.kernel_._gram(X, self.components_) @ self.normalization_
        return features

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """A name for each landmark."""
        check_is_fitted(self, "normalization_")
        return np.array([f"nystroem{i}" for i in range(len(self.normalization_))], dtype=object)


def _inverse_root(gram: Array) -> Array:
    """K^(-1/2); directions that K has only by rounding are left out."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    keep = values > values.max() * len(values) * np.finfo(float).eps
    root: Array = (vectors[:, keep] / np.sqrt(values[keep])) @ vectors[:, keep].T
    return root
