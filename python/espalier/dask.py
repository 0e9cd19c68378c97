"""Kernels and models over a cluster with dask, which is needed for these only:
``pip install 'espalier-kernels[dask]'``.

Both functions are lazy: they return dask collections, and the workers compute when you call ``compute()``. A worker
runs a task on one core, so a kernel or estimator with ``threads=0`` uses one thread there; any other number stays.
``progress`` is not called on workers.

>>> import espalier.dask
>>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(S (C c))"]
>>> K = espalier.dask.gram("norm(sst(lambda=0.4))", trees, chunks=2)
>>> K.shape, K.numblocks
((3, 3), (2, 2))
>>> K.compute().round(3)
array([[1.   , 0.606, 0.   ],
       [0.606, 1.   , 0.   ],
       [0.   , 0.   , 1.   ]])
"""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from ._data import Dataset, label_of, lines_of, parse_lines
from ._kernel import Kernel, as_kernel
from ._load import load
from ._values import describe

try:
    import cloudpickle
    import dask.array as da
    import dask.bag as db
    from dask.base import is_dask_collection, tokenize
    from dask.delayed import delayed
    from dask.highlevelgraph import HighLevelGraph
    from dask.sizeof import sizeof
except ImportError as missing:
    raise ImportError(
        f"espalier.dask needs dask ({missing}); install it with: pip install 'espalier-kernels[dask]'"
    ) from None

__all__ = ["gram", "predict"]

Array = np.ndarray[Any, Any]

_METHODS = ("predict", "predict_proba", "decision_function")


def _for_workers(original: Any) -> Any:
    """A copy whose parts of ours run in one thread unless told otherwise, without functions of this process."""
    whole = copy.deepcopy(original)
    for part in [whole, *(whole.get_params(deep=True).values() if hasattr(whole, "get_params") else ())]:
        if type(part).__module__.partition(".")[0] != __package__ or not hasattr(part, "threads"):
            continue
        part.threads = part.threads or 1
        part.progress = None
    return whole


# ------------------------------------------------------------- Gram matrices


def gram(kernel: str | Kernel, X: Any, Y: Any = None, *, chunks: Any = 1000) -> Any:
    """The Gram matrix of examples as a ``dask.array``, with the values of ``Kernel(X, Y)``.

    ``X`` and ``Y`` are whatever a :class:`espalier.Kernel` takes. They are cut into pieces of ``chunks`` examples: a
    number, or a pair of these for rows and columns, each a number or a tuple of sizes. A piece is sent to a worker
    once, and serves all blocks that are computed there. ``X`` and ``Y`` may also be dask bags, arrays, dataframes or
    their columns, whose partitions are the pieces and stay where they are; sizes that only the workers know are NaN
    then (``compute_chunk_sizes()`` finds them). Without ``Y``, a block below the diagonal is the transpose of the
    one above, and not computed again.
    """
    shared = _for_workers(as_kernel(kernel))
    rows_by, columns_by = _two(chunks)
    rows = _pieces(shared, X, rows_by, "X")
    same = Y is None or Y is X
    columns = rows if same and rows_by == columns_by else _pieces(shared, X if same else Y, columns_by, "Y")
    name = "espalier-gram-" + tokenize(shared.text, shared.threads, shared.memory, rows.keys, columns.keys)
    source = f"{name}-kernel"
    layer: dict[Any, Any] = {source: (pickle.loads, pickle.dumps(shared)), **rows.tasks, **columns.tasks}
    for i, row in enumerate(rows.keys):
        for j, column in enumerate(columns.keys):
            if columns is rows and j < i:
                layer[name, i, j] = (np.transpose, (name, j, i))
            else:
                layer[name, i, j] = (_block, source, row, None if columns is rows and i == j else column)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[*rows.sources, *columns.sources])
    return da.Array(graph, name, chunks=(rows.sizes, columns.sizes), dtype=float, meta=np.empty((0, 0)))


def _two(chunks: Any) -> tuple[Any, Any]:
    pair = chunks if isinstance(chunks, (tuple, list)) else (chunks, chunks)
    if len(pair) != 2 or not all(map(_is_size, pair)):
        raise ValueError(
            f"chunks is {chunks!r}; allowed is a whole number > 0, or a pair of these for rows and columns, "
            "each a number or a tuple of sizes"
        )
    return tuple(tuple(part) if isinstance(part, (tuple, list)) else part for part in pair)  # type: ignore[return-value]


def _is_size(part: Any) -> bool:
    if isinstance(part, (tuple, list)):
        return len(part) > 0 and all(not isinstance(size, (tuple, list)) and _is_size(size) for size in part)
    return hasattr(part, "__index__") and (part > 0 or part == -1)


class _Pieces(NamedTuple):
    """Examples as keys of tasks, each of which gives a piece."""

    keys: list[Any]
    sizes: tuple[float, ...]
    tasks: dict[Any, Any]
    sources: list[Any]  # the collections that the tasks take their input from


def _pieces(kernel: Kernel, X: Any, chunks: Any, name: str) -> _Pieces:
    if is_dask_collection(X):
        return _distributed(kernel, X, name)
    data = kernel.dataset(X, name=name)
    sizes = da.core.normalize_chunks((chunks,), (len(data),))[0]
    texts, field = _lines(data, sizes), label_of(data, targets=False)
    label = "espalier-examples-" + tokenize(texts, field)
    keys = [(label, i) for i in range(len(sizes))]
    tasks = {key: (_read, text, field, size, name) for key, text, size in zip(keys, texts, sizes, strict=True)}
    return _Pieces(keys, sizes, tasks, [])


def _lines(data: Dataset, sizes: Sequence[int]) -> list[bytes]:
    """Pieces as JSON Lines. Where all trees of a column are empty, an example that has one follows those of the piece:
    only its values tell that the column holds trees."""
    full = [np.array(list(map(bool, data.column(name)))) for name, kind in data.columns.items() if kind == "tree"]
    pieces = []
    for start, end in pairwise([0, *np.cumsum(sizes).tolist()]):
        lacking = [has for has in full if has.any() and not has[start:end].any()]
        more = [lines_of(data, at, at + 1, targets=False) for at in (int(has.argmax()) for has in lacking)]
        pieces.append(b"".join([lines_of(data, start, end, targets=False), *more]))
    return pieces


def _distributed(kernel: Kernel, X: Any, name: str) -> _Pieces:
    """A piece for each partition of a collection."""
    sizes: tuple[float, ...]
    if isinstance(X, da.Array):
        X = _whole_rows(X)
        parts, sizes = X.to_delayed().ravel().tolist(), X.chunks[0]
    elif isinstance(X, db.Bag) or _is_frame(X):
        parts = X.to_delayed()
        sizes = (np.nan,) * len(parts)
    else:
        raise TypeError(f"{name} is {describe(X)}; allowed are examples, or a dask bag, array, dataframe or column")
    label = "espalier-examples-" + tokenize(kernel.text, [part.key for part in parts])
    keys = [(label, i) for i in range(len(parts))]
    source = f"{label}-kernel"
    tasks: dict[Any, Any] = {source: (pickle.loads, pickle.dumps(kernel))}
    tasks |= {key: (_convert, source, part.key, name) for key, part in zip(keys, parts, strict=True)}
    return _Pieces(keys, sizes, tasks, parts)


class _Piece(NamedTuple):
    """Some of the examples, on a worker. The data may have more at the end; without examples there are none."""

    data: Dataset | None
    examples: int


def _read(lines: bytes, label: str | None, count: int, name: str) -> _Piece:
    return _Piece(parse_lines(lines, label, name), count)


def _convert(kernel: Kernel, part: Any, name: str) -> _Piece:
    examples = _examples(part)
    return _Piece(kernel.dataset(examples, name=name), len(examples)) if len(examples) else _Piece(None, 0)


def _block(kernel: Kernel, rows: _Piece, columns: _Piece | None) -> Array:
    other = rows if columns is None else columns
    if rows.data is None or other.data is None:
        return np.empty((rows.examples, other.examples))
    values: Array = kernel._gram(rows.data, None if columns is None else columns.data)
    return values[: rows.examples, : other.examples]


@sizeof.register(_Piece)
def _size(piece: _Piece) -> int:
    """About how many bytes it takes to send, by which the scheduler decides what goes where."""
    if piece.data is None:
        return 0
    some = range(0, len(piece.data), max(1, len(piece.data) // 10))
    return sum(len(lines_of(piece.data, i, i + 1, targets=False)) for i in some) * len(piece.data) // len(some)


# --------------------------------------------------------------- predictions


def predict(model: Any, data: Any, method: str = "predict") -> Any:
    """What a fitted estimator says of each example of a dask collection, as a collection of the same kind.

    ``model`` is an estimator, a pipeline that ends in one, or the path of a model file. ``method`` is ``"predict"``,
    ``"predict_proba"`` or ``"decision_function"``. The model is sent to a worker once, and loaded once in each of its
    processes. ``data`` is one of these:

    * a bag of examples: a bag of predictions, each a value or an array of the values of the classes;
    * an array, of texts or with a vector in each row: an array with a value, or a row of these, for each;
    * a column of a dataframe: a series with the same index, or a dataframe with a column for each class. A dataframe
      gives its columns by name to a kernel that asks for them.
    """
    if method not in _METHODS:
        raise ValueError(f"method is {method!r}; allowed are {', '.join(map(repr, _METHODS))}")
    estimator = load(model) if isinstance(model, (str, os.PathLike)) else model
    getattr(estimator, method)  # where it is missing, the estimator says why
    check_is_fitted(estimator)
    form = _form(estimator, method)
    packed = cloudpickle.dumps(_for_workers(estimator))
    digest = hashlib.sha256(packed).hexdigest()
    # A task, not a value: so it is sent to a worker once instead of with every partition.
    shipped = delayed(_Shipped, pure=True)(packed, digest, dask_key_name=f"espalier-model-{digest}")
    if isinstance(data, db.Bag):
        return data.map_partitions(_predict_list, shipped, method, form)
    if isinstance(data, da.Array):
        return _predict_array(data, shipped, method, form)
    if _is_frame(data):
        meta = _as_frame(form.empty(), data._meta.index, method, form)
        return data.map_partitions(_predict_frame, shipped, method, form, meta=meta)
    raise TypeError(
        f"data is {describe(data)}; allowed are a dask bag, array, dataframe and a column of one; "
        f"call {method} of the estimator for all else"
    )


class _Form(NamedTuple):
    """What predictions look like."""

    dtype: Any
    labels: list[Any] | None  # of the columns; None: one value for each example

    def empty(self) -> Array:
        return np.empty(0 if self.labels is None else (0, len(self.labels)), self.dtype)


def _form(estimator: Any, method: str) -> _Form:
    classes = getattr(estimator, "classes_", None)
    if method == "predict":
        other = np.dtype(np.int64 if isinstance(estimator, OutlierMixin) else float)
        return _Form(other if classes is None else np.asarray(classes).dtype, None)
    several = classes is not None and (method == "predict_proba" or len(classes) > 2)
    return _Form(np.dtype(float), np.asarray(classes).tolist() if several else None)


class _Shipped(NamedTuple):
    """An estimator on its way."""

    packed: bytes
    digest: str


_KEPT = 8  # models, so that a worker that lives long does not keep all it has ever seen
_loaded: OrderedDict[str, Any] = OrderedDict()
_loading = threading.Lock()


def _load_once(shipped: _Shipped) -> Any:
    """The estimator, loaded by the first task of this process that needs it."""
    with _loading:
        if shipped.digest not in _loaded:
            _loaded[shipped.digest] = pickle.loads(shipped.packed)
        _loaded.move_to_end(shipped.digest)
        while len(_loaded) > _KEPT:
            _loaded.popitem(last=False)
        return _loaded[shipped.digest]


def _predict(examples: Any, shipped: _Shipped, method: str, form: _Form) -> Array:
    if len(examples) == 0:
        return form.empty()
    values: Array = np.asarray(getattr(_load_once(shipped), method)(examples))
    return values.astype(form.dtype, copy=False)


def _predict_list(part: Iterable[Any], shipped: _Shipped, method: str, form: _Form) -> list[Any]:
    values = _predict(_examples(part), shipped, method, form)
    return values.tolist() if values.ndim == 1 else list(values)


def _predict_array(data: Any, shipped: Any, method: str, form: _Form) -> Any:
    rows = _whole_rows(data)
    kinds = {"dtype": form.dtype, "meta": form.empty()}
    if form.labels is None:
        return rows.map_blocks(_predict, shipped, method, form, drop_axis=list(range(1, rows.ndim)), **kinds)
    chunks = (rows.chunks[0], (len(form.labels),))
    new_axis = 1 if rows.ndim == 1 else None
    return rows.map_blocks(_predict, shipped, method, form, new_axis=new_axis, chunks=chunks, **kinds)


def _predict_frame(part: Any, shipped: _Shipped, method: str, form: _Form) -> Any:
    return _as_frame(_predict(part, shipped, method, form), part.index, method, form)


def _as_frame(values: Array, index: Any, method: str, form: _Form) -> Any:
    import pandas as pd

    if form.labels is None:
        return pd.Series(values, index=index, name=method)
    return pd.DataFrame(values, index=index, columns=form.labels)


# --------------------------------------------------------------- collections


def _is_frame(data: Any) -> bool:
    """Whether it is a dataframe of dask or a column of one; these need pandas, which may not be there."""
    return is_dask_collection(data) and hasattr(data, "_meta") and hasattr(data, "map_partitions")


def _whole_rows(data: Any) -> Any:
    if data.ndim > 2:
        raise ValueError(f"the array has {data.ndim} dimensions; allowed are one, of texts, and two, with vectors")
    return data if data.ndim == 1 or data.numblocks[1] == 1 else data.rechunk({1: -1})


def _examples(part: Any) -> Sequence[Any]:
    """The examples of a partition, which of a bag may be an iterator."""
    return part if hasattr(part, "__len__") else list(part)
