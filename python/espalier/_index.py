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
    ``norm(...)``. An example with K(x, x) = 0 even so, as an empty tree, has the distance 1 from all others (which is
    not known of examples in a loaded file). :meth:`search`, :meth:`pairs` and graphs of the most similar examples take
    any kernel.

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
        data, nulls, count = self._dataset(X), list[Array](), self.n_samples_fit_
        handle = _espalier.index_add(self._handle, data._handle, *self._run())
        if _is_unit(self.kernel_):
            nulls.append(np.concatenate([self._nulls(), count + np.flatnonzero(self._is_null(data))]))
        self._adopt(handle)
        self._null_examples: list[Array] = nulls
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, which appears complete or not at all; ``espalier search`` reads it."""
        check_is_fitted(self, "n_samples_fit_")
        _espalier.index_write(self._handle, encode_path(path))

    @staticmethod
    def load(path: str | os.PathLike[str], **parameters: Any) -> Index:
        """Opens a file of :meth:`save` or of ``espalier index``; parameters are those of the constructor
        but kernel and id, which the file has."""
        for name in ("kernel", "id"):
            if name in parameters:
                raise ValueError(f"{name} cannot be given: the file says what it is")
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
        self._null_examples = []  # of _nulls, once it is asked for

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
        self._check_distances()
        distance, example, _ = self._nearest(X, self._count(X, n_neighbors))
        return (distance, example) if return_distance else example

    def _count(self, X: Any, n_neighbors: int | None) -> int:
        check_is_fitted(self, "n_samples_fit_")
        count = self._whole(self.n_neighbors if n_neighbors is None else n_neighbors)
        if count + (X is None) > self.n_samples_fit_:
            raise ValueError(f"n_neighbors is {count}, but there are {self.n_samples_fit_} examples")
        return count

    def _most_similar(self, X: Any, count: int, more: int = 0) -> tuple[Array, Array]:
        """Examples and similarities, a row for each query; without X, and not ``more``, none has itself."""
        own = X is None
        hits = self.search(self._own() if own else X, min(count + own + more, self.n_samples_fit_))
        shape = (len(hits.start) - 1, -1)
        example, similarity = hits.example.reshape(shape), hits.similarity.reshape(shape)
        return _without_self(example, similarity) if own and not more else (example, similarity)

    def _nearest(self, X: Any, count: int) -> tuple[Array, Array, Array]:
        """Distances, examples and similarities, a row for each query."""
        own = X is None
        data = self._own() if own else self._dataset(X)
        nulls, null_queries = self._nulls(), self._is_null(data)
        if not len(nulls) and not null_queries.any():
            example, similarity = self._most_similar(None if own else data, count)
            return _distance(similarity), example, similarity
        found = zip(*self._most_similar(None if own else data, count, len(nulls) + 1), strict=True)
        rows = []
        for i, (example, similarity) in enumerate(found):
            row = _with_nulls(example, similarity, nulls, null_queries[i], self.n_samples_fit_)
            rows.append([part[(row[1] != i) | (not own)][:count] for part in row])
        distance, example, similarity = (np.array(part) for part in zip(*rows, strict=True))
        return distance, example, similarity

    def radius_neighbors(self, X: Any = None, radius: float | None = None, return_distance: bool = True) -> Any:
        """Distances and examples of all neighbours up to a distance, the nearest first: an array for each query."""
        self._check_distances()
        distance, example, _ = self._near(X, radius)
        return (distance, example) if return_distance else example

    def _near(self, X: Any, radius: float | None) -> tuple[Array, Array, Array]:
        """Distances, examples and similarities up to a distance: of each an array for each query."""
        limit = float(self.radius if radius is None else radius)
        if not limit >= 0:
            raise ValueError(f"radius is {limit!r}; allowed is a number >= 0")
        own = X is None
        data = self._own() if own else self._dataset(X)
        nulls, null_queries = self._nulls(), self._is_null(data)
        hits = self.search(data, None, 1 - limit * limit / 2)
        distances, examples, similarities = (np.empty(len(data), dtype=object) for _ in range(3))
        for i in range(len(data)):
            at = slice(hits.start[i], hits.start[i + 1])
            example, similarity = hits.example[at], hits.similarity[at]
            row: tuple[Array, ...] = _distance(similarity), example, similarity
            if len(nulls) or null_queries[i]:
                row = _with_nulls(example, similarity, nulls, null_queries[i], self.n_samples_fit_)
                row = tuple(values[row[0] <= limit] for values in row)
            distances[i], examples[i], similarities[i] = (part[(row[1] != i) | (not own)] for part in row)
        return distances, examples, similarities

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> Any:
        """The same as a sparse matrix, with a row for each query and a column for each example. With ``mode``
        ``"similarity"`` the most similar examples, by any kernel."""
        self._check_mode(mode)
        count = self._count(X, n_neighbors)
        if mode == "similarity":
            example, value = self._most_similar(X, count)
        else:
            self._check_distances()
            value, example, _ = self._nearest(X, count)
        return self._graph(np.arange(0, example.size + 1, count), example.ravel(), value.ravel(), mode)

    def radius_neighbors_graph(self, X: Any = None, radius: float | None = None, mode: str = "connectivity") -> Any:
        """The same for all neighbours up to a distance."""
        self._check_mode(mode)
        self._check_distances()
        distance, example, similarity = self._near(X, radius)
        value = similarity if mode == "similarity" else distance
        start = np.concatenate([[0], np.cumsum([len(row) for row in example])])
        return self._graph(start, np.concatenate(list(example)), np.concatenate(list(value)), mode)

    def _graph(self, start: Array, example: Array, value: Array, mode: str) -> Any:
        from scipy.sparse import csr_matrix

        if mode == "connectivity":
            value = np.ones(len(example))
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

    def _is_null(self, data: Dataset) -> Array:
        """Which examples have K(x, x) = 0 though the kernel is normalised, such as empty trees."""
        null: Array = Kernel(self.kernel_, threads=self.threads, memory=self.memory).diag(data) == 0
        return null

    def _nulls(self) -> Array:
        """Which examples of the collection these are; none of a loaded one, whose examples are not at hand."""
        if not self._null_examples:
            null = np.zeros(0) if self._fitted is None else self._is_null(self._fitted)
            self._null_examples.append(np.flatnonzero(null))
        return self._null_examples[0]

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
        if "_handle" in self.__dict__ and _is_unit(self.kernel_):
            self._nulls()
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
            self._null_examples = state.get("_null_examples", [])


def _distance(similarity: Array) -> Array:
    distance: Array = np.sqrt(np.maximum(2 - 2 * similarity, 0))
    return distance


def _with_nulls(
    example: Array, similarity: Array, nulls: Array, null_query: bool, count: int
) -> tuple[Array, Array, Array]:
    """What was found for a query, with the examples (or a query) that have K(x, x) = 0: the distance is 1 from all
    others and 0 from each other."""
    if null_query:
        example, similarity = np.arange(count), np.zeros(count)
        distance = np.ones(count)
        distance[nulls] = 0
    else:
        others = ~np.isin(example, nulls)
        example = np.concatenate([nulls, example[others]])
        similarity = np.concatenate([np.zeros(len(nulls)), similarity[others]])
        distance = np.concatenate([np.ones(len(nulls)), _distance(similarity[len(nulls) :])])
    order = np.lexsort((example, distance))
    return distance[order], example[order], similarity[order]


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
