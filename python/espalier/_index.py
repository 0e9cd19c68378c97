"""Search: the examples that are most like a query, and all pairs that are alike."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _espalier
from ._core import Progress, Run, decode, encode, encode_path
from ._data import Dataset
from ._expression import scan
from ._kernel import Kernel, as_kernel
from ._tags import ExampleTags
from ._training import bare_data

Array = np.ndarray[Any, Any]


class Hits(NamedTuple):
    """What a search found: of query ``i`` the entries ``start[i]`` to ``start[i + 1]`` of the other two, the best
    first."""

    start: Array
    example: Array
    similarity: Array
    computed: int
    """Similarities that were computed ..."""
    skipped: int
    """... and that bounds made needless."""


class Index(ExampleTags, TransformerMixin, BaseEstimator):
    """A collection prepared for search (docs/search.md); the file is that of ``espalier index``.

    ``kernel``: an expression; with one of st, sst and sasst, plain or normalised, bounds skip nearly all values.
    Results are exact in any case. ``n_neighbors``, ``radius``: what :meth:`kneighbors` and :meth:`radius_neighbors`
    give unless they are told otherwise. ``mode``: what :meth:`transform` puts into its sparse graph, ``"distance"``,
    ``"similarity"`` or ``"connectivity"``. ``id``: the column of X that names examples.

    Distances are those of the feature space, sqrt(2 - 2 K(x, y)), and need a kernel with K(x, x) = 1, such as
    ``norm(...)``. :meth:`search` and :meth:`pairs` speak of similarities and take any kernel.

    >>> from espalier import Index
    >>> index = Index("norm(sst(lambda=0.4))").fit(["(S (A a))", "(S (A b))", "(S (A a) (B b))"])
    >>> distance, example = index.kneighbors(["(S (A a))"], n_neighbors=2)
    >>> example
    array([[0, 1]])
    >>> index.pairs(0.3)
    [(0, 1, 0.4085106382980...)]
    """

    def __init__(
        self,
        kernel: str | Kernel = "norm(sst)",
        *,
        n_neighbors: int = 10,
        radius: float = 1.0,
        mode: str = "distance",
        id: str | None = None,
        threads: int = 0,
        memory: int = 0,
        progress: Progress | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.mode = mode
        self.id = id
        self.threads = threads
        self.memory = memory
        self.progress = progress

    # ------------------------------------------------------------- making

    def fit(self, X: Any, y: Any = None) -> Index:
        """Prepares examples: a list or a table, an iterator, a data file, or what :func:`espalier.read_code` gives."""
        kernel = as_kernel(self.kernel)
        data = bare_data(X, kernel.columns.also(self.id), self._run())
        field = None if self.id is None else encode(self.id)
        self._adopt(_espalier.index_new(kernel._handle, data._handle, field, *self._run()))
        self._fitted: Dataset | None = data
        return self

    def add(self, X: Any) -> Index:
        """Appends examples: the same index as if all had been there at once."""
        check_is_fitted(self, "n_samples_fit_")
        self._adopt(_espalier.index_add(self._handle, self._dataset(X)._handle, *self._run()))
        self._fitted = None
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, which appears complete or not at all; ``espalier search`` reads it."""
        check_is_fitted(self, "n_samples_fit_")
        _espalier.index_write(self._handle, encode_path(path))

    @staticmethod
    def load(path: str | os.PathLike[str], **parameters: Any) -> Index:
        """Opens a file of :meth:`save` or of ``espalier index``; parameters are those of the constructor."""
        index = Index(**parameters)
        index._adopt(_espalier.index_read(encode_path(path), *index._run()))
        index.kernel = index.kernel_
        index.id = index._field
        return index

    def _adopt(self, handle: Any) -> None:
        self._handle = handle
        count, kernel, field, _ = _espalier.index_info(handle)
        self.n_samples_fit_: int = count
        self.kernel_: str = decode(kernel)
        self._field = None if field is None else decode(field)
        self._fitted = None

    @property
    def ids_(self) -> list[str] | None:
        """The names of the examples."""
        check_is_fitted(self, "n_samples_fit_")
        return None if self._field is None else [decode(name) for name in _espalier.index_ids(self._handle)]

    @property
    def summary(self) -> dict[str, str]:
        """Facts about the index, as ``espalier info`` tells them."""
        check_is_fitted(self, "n_samples_fit_")
        lines = decode(_espalier.index_info(self._handle)[3]).splitlines()
        return dict(line.split("\t", 1) for line in lines)

    def _run(self) -> Run:
        return Run.of(self.threads, self.memory, self.progress)

    def _dataset(self, X: Any) -> Any:
        return bare_data(X, scan(self.kernel_).columns.also(self._field), self._run())

    # ---------------------------------------------------------- searching

    def search(self, X: Any, top: int | None = 10, above: float | None = None, *, bounds: bool = True) -> Hits:
        """The ``top`` most similar examples of each query (None: all), whose similarity is ``above`` or more."""
        return self._search(X, top, above, bounds)[1]

    def measure(self, X: Any, qrels: str | os.PathLike[str], top: int | None = None) -> dict[str, float]:
        """How good the search is: MRR, MAP, precision and nDCG by judgements in TREC's form, the query itself left
        out. Queries and examples need names (``id``)."""
        hits, _ = self._search(X, top, None, True, others=True)
        return dict(_espalier.hits_measure(hits, self._handle, encode_path(qrels)))

    def _search(
        self, X: Any, top: int | None, above: float | None, bounds: bool, *, others: bool = False
    ) -> tuple[Any, Hits]:
        check_is_fitted(self, "n_samples_fit_")
        if top is not None and (not hasattr(top, "__index__") or top < 1):
            raise ValueError(f"top is {top!r}; allowed is a whole number >= 1, or None")
        data = self._dataset(X)
        least = None if above is None else float(above)
        hits, entries, computed, skipped = _espalier.search(
            self._handle, data._handle, int(top or 0), least, None, others, not bounds, *self._run()
        )
        start = np.empty(len(data) + 1, dtype=np.int64)
        example, similarity = np.empty(entries, dtype=np.int64), np.empty(entries)
        _espalier.hits_fill(hits, start, example, similarity)
        return hits, Hits(start, example, similarity, computed, skipped)

    def pairs(self, above: float, *, bounds: bool = True) -> list[tuple[int, int, float]]:
        """All pairs of examples whose similarity is ``above`` or more, the best first."""
        check_is_fitted(self, "n_samples_fit_")
        return _espalier.pairs(self._handle, float(above), not bounds, *self._run())

    def clusters(self, above: float, *, bounds: bool = True) -> list[list[tuple[int, float]]]:
        """Groups of examples that such pairs connect, the largest first: the representative, then the others, each
        with its similarity to it."""
        check_is_fitted(self, "n_samples_fit_")
        return _espalier.clusters(self._handle, float(above), not bounds, *self._run())

    # -------------------------------------------------- as scikit-learn does

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Distances and examples of the nearest neighbours of each query, the nearest first. Without X, those of the
        examples themselves, each without itself."""
        count = self._whole(self.n_neighbors if n_neighbors is None else n_neighbors)
        own = X is None
        self._check_distances()
        if count + own > self.n_samples_fit_:
            raise ValueError(f"n_neighbors is {count}, but there are {self.n_samples_fit_} examples")
        hits = self.search(self._own() if own else X, count + own)
        queries = len(hits.start) - 1
        example = hits.example.reshape(queries, count + own)
        similarity = hits.similarity.reshape(queries, count + own)
        if own:
            example, similarity = _without_self(example, similarity)
        return (_distance(similarity), example) if return_distance else example

    def radius_neighbors(self, X: Any = None, radius: float | None = None, return_distance: bool = True) -> Any:
        """Distances and examples of all neighbours up to a distance, the nearest first: an array for each query."""
        self._check_distances()
        own = X is None
        start, example, similarity = self._within(self._own() if own else X, radius)
        distances, examples = np.empty(len(start) - 1, dtype=object), np.empty(len(start) - 1, dtype=object)
        for i in range(len(start) - 1):
            part = slice(start[i], start[i + 1])
            keep = example[part] != i if own else slice(None)
            examples[i], distances[i] = example[part][keep], _distance(similarity[part][keep])
        return (distances, examples) if return_distance else examples

    def _within(self, X: Any, radius: float | None) -> tuple[Array, Array, Array]:
        distance = float(self.radius if radius is None else radius)
        if not distance >= 0:
            raise ValueError(f"radius is {distance!r}; allowed is a number >= 0")
        hits = self.search(X, None, 1 - distance * distance / 2)
        return hits.start, hits.example, hits.similarity

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """The same as a sparse matrix, with a row for each query and a column for each example."""
        self._check_mode(mode)
        distance, example = self.kneighbors(X, n_neighbors)
        start = np.arange(0, example.size + 1, example.shape[1])
        return self._graph(start, example.ravel(), distance.ravel(), mode)

    def radius_neighbors_graph(self, X: Any = None, radius: float | None = None, mode: str = "connectivity") -> Any:
        """The same for all neighbours up to a distance."""
        self._check_mode(mode)
        distance, example = self.radius_neighbors(X, radius)
        start = np.concatenate([[0], np.cumsum([len(row) for row in example])])
        return self._graph(start, np.concatenate(list(example)), np.concatenate(list(distance)), mode)

    def _graph(self, start: Array, example: Array, distance: Array, mode: str) -> Any:
        from scipy.sparse import csr_matrix

        if mode == "connectivity":
            value: Array = np.ones(len(example))
        else:
            value = distance if mode == "distance" else 1 - distance**2 / 2
        return csr_matrix((value, example, start), shape=(len(start) - 1, self.n_samples_fit_))

    def transform(self, X: Any) -> Any:
        """The graph of nearest neighbours, as of scikit-learn's KNeighborsTransformer: with distances, one neighbour
        more than ``n_neighbors``, since an example of the collection is its own."""
        check_is_fitted(self, "n_samples_fit_")
        more = self.mode != "connectivity"
        return self.kneighbors_graph(X, self._whole(self.n_neighbors) + more, self.mode)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """A name for each example."""
        names = self.ids_ or [f"index{i}" for i in range(self.n_samples_fit_)]
        return np.array(names, dtype=object)

    def _own(self) -> Any:
        check_is_fitted(self, "n_samples_fit_")
        if self._fitted is None:
            raise ValueError("the examples are not at hand: give X, or fit instead of loading or adding")
        return self._fitted

    def _check_distances(self) -> None:
        check_is_fitted(self, "n_samples_fit_")
        if not _is_unit(self.kernel_):
            raise ValueError(
                f"distances need a kernel with K(x, x) = 1, such as norm({self.kernel_}); search takes any"
            )

    @staticmethod
    def _check_mode(mode: str) -> None:
        if mode not in ("connectivity", "distance", "similarity"):
            raise ValueError(f"mode is {mode!r}; allowed is 'connectivity', 'distance' or 'similarity'")

    @staticmethod
    def _whole(count: Any) -> int:
        if not hasattr(count, "__index__") or count < 1:
            raise ValueError(f"n_neighbors is {count!r}; allowed is a whole number >= 1")
        return int(count)

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_fitted", None)
        if "_handle" in state:
            state["_handle"] = _espalier.index_bytes(state["_handle"])
        return state

    def __setstate__(self, state: Any) -> None:
        state = dict(state)
        data = state.pop("_handle", None)
        super().__setstate__(state)
        if data is not None:
            self._adopt(_espalier.index_parse(data, b"index", *self._run()))


def _distance(similarity: Array) -> Array:
    distance: Array = np.sqrt(np.maximum(2 - 2 * similarity, 0))
    return distance


def _without_self(example: Array, similarity: Array) -> tuple[Array, Array]:
    """Each row without its own number; where others are as similar and come first, without the last."""
    own = example == np.arange(len(example))[:, None]
    own[~own.any(axis=1), -1] = True
    shape = (len(example), example.shape[1] - 1)
    return example[~own].reshape(shape), similarity[~own].reshape(shape)


def _is_unit(kernel: str) -> bool:
    """Whether the expression is one norm(...) or one rbf(...)."""
    match = re.match(r"(norm|rbf)\(", kernel)
    if match is None:
        return False
    depth = 0
    for at, letter in enumerate(kernel):
        depth += (letter == "(") - (letter == ")")
        if letter == ")" and depth == 0:
            return at == len(kernel) - 1
    return False
