"""Python objects as datasets of the library.

Examples are written as JSON Lines in memory, which the library reads as it would a file (docs/formats.md), so that
there is one reader and one set of messages. What a column holds is decided by all of its values together:

* trees: bracket strings, Trees, and whatever else :func:`espalier.tree` takes;
* sequences: strings, or lists of tokens;
* vectors: lists of numbers, dicts of numbers by name, rows of arrays and of sparse matrices.
"""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import _espalier
from ._code import Code
from ._core import QUIET, Run, decode, encode, encode_path
from ._expression import Columns
from ._targets import as_list, encode_value
from ._trees import Unit, kind_of
from ._values import all_numbers, describe, is_number, is_vector, list_of, quote, write_column

_JSON_NUMBER = r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?"
_ANY = Columns()
_DEFAULT_NAMES = {"tree": "tree", "sequence": "words", "vector": "x"}


class Dataset(Sequence[Any]):
    """Examples as the library holds them: immutable, with named columns. :func:`espalier.read` makes one of a file.

    It can stand for ``X`` everywhere and is then not converted again. Estimators learn from its own targets if they are
    given none. ``data[i]`` is an example: the text of its value, or a dict of these if there are several columns.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self._count, columns, target, self._numbers, self.bad_count, bad = _espalier.dataset_info(handle)
        self.first_bad: str | None = None if bad is None else decode(bad)
        """Why the first of ``bad_count`` examples was left out, if ``skip_bad`` was given."""
        self.columns: dict[str, str] = {decode(name): kind for name, kind in columns}
        """The columns by name: ``"tree"``, ``"sequence"`` or ``"vector"``."""
        self.target_name: str | None = None if target is None else decode(target)

    @property
    def target(self) -> np.ndarray[Any, Any] | None:
        """The targets, as numbers if the file has numbers; None if it has none."""
        if self.target_name is None:
            return None
        return self._values(_espalier.dataset_targets(self._handle))

    @property
    def classes(self) -> np.ndarray[Any, Any]:
        """The different targets in order, of the type that :attr:`target` has; empty if there are none."""
        return np.unique(self._values(_espalier.dataset_classes(self._handle)))

    def _values(self, targets: list[bytes]) -> np.ndarray[Any, Any]:
        texts = [decode(text) for text in targets]
        if not self._numbers:
            return np.array(texts, dtype=str)
        whole = all(re.fullmatch(r"[-+]?\d{1,18}", text) for text in texts)
        return np.array([int(text) for text in texts] if whole else [float(text) for text in texts])

    def column(self, name: str) -> list[str]:
        """The texts of a column: trees as brackets, sequences as tokens, vectors as JSON."""
        if name not in self.columns:
            raise ValueError(f"there is no column {name!r}; there are {', '.join(self.columns)}")
        number = list(self.columns).index(name)
        return [decode(_espalier.dataset_text(self._handle, number, i)) for i in range(self._count)]

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._count))]
        try:
            at = operator.index(index)
        except TypeError:
            hint = f"; column({index!r}) gives a column" if isinstance(index, str) and index in self.columns else ""
            raise ValueError(f"an example is taken by its number, not by {describe(index)}{hint}") from None
        at += self._count if at < 0 else 0
        values = {}
        for number, (name, kind) in enumerate(self.columns.items()):
            text = decode(_espalier.dataset_text(self._handle, number, at))
            values[name] = json.loads(text) if kind == "vector" else text
        return values if len(values) > 1 else next(iter(values.values()))

    # Pickled as JSON Lines, which hold every column and the target exactly.
    def __reduce__(self) -> Any:
        return _unpickle, (lines_of(self), label_of(self), self.target_name, self.bad_count, self.first_bad)

    def __copy__(self) -> Dataset:
        return self

    def __deepcopy__(self, memo: Any) -> Dataset:
        return self

    def __repr__(self) -> str:
        columns = ", ".join(f"{name}: {kind}" for name, kind in self.columns.items())
        return f"<Dataset of {self._count} examples; {columns}>"


def lines_of(data: Dataset, start: int = 0, stop: int | None = None, *, targets: bool = True) -> bytes:
    """Examples ``start`` to ``stop`` as JSON Lines, with their targets unless told otherwise."""
    rows = range(len(data))[start:stop]
    fields: dict[str, list[str]] = {}
    if targets and data.target_name is not None:
        texts = _espalier.dataset_targets(data._handle)
        fields[data.target_name] = [_target_json(decode(texts[i]), data._numbers) for i in rows]
    elif (label := label_of(data, targets=targets)) is not None:
        fields[label] = ["0"] * len(rows)
    for number, (name, kind) in enumerate(data.columns.items()):
        values = [decode(_espalier.dataset_text(data._handle, number, i)) for i in rows]
        fields[name] = values if kind == "vector" else list(map(quote, values))
    return encode(_join(fields))


def label_of(data: Dataset, *, targets: bool = True) -> str | None:
    """The field of the target in :func:`lines_of`. Without targets there is one only if a column has its name."""
    own = data.target_name if targets else None
    return _target_name(data.columns, False) if own is None else own


def parse_lines(lines: bytes, label: str | None, name: str = "X") -> Dataset:
    """The examples of :func:`lines_of`; ``name`` stands for them in messages."""
    return _parse(lines, label, QUIET, name)


def _target_json(text: str, number: bool) -> str:
    if not number:
        return quote(text)
    return text if re.fullmatch(_JSON_NUMBER, text) else repr(float(text))  # "+1" and ".5" are none of JSON's


def _unpickle(lines: bytes, label: str | None, target: str | None, bad_count: int, first_bad: str | None) -> Dataset:
    data = parse_lines(lines, label)
    data.target_name, data.bad_count, data.first_bad = target, bad_count, first_bad
    return data


def read(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    format: str = "auto",
    clean: bool = False,
    skip_bad: bool = False,
    lowercase: bool = False,
    digits: bool = False,
    progress: Any = None,
) -> Dataset:
    """Reads a data file in any format of docs/formats.md, plain or compressed.

    ``target`` is the field that holds the target; ``"y"`` unless told. ``clean`` drops traces and function tags from
    trees, ``skip_bad`` leaves out examples that cannot be read, ``lowercase`` and ``digits`` change the
    words of sequences.
    """
    name = None if target is None else encode(target)
    run = Run.of(0, 0, progress)
    handle = _espalier.dataset_read(encode_path(path), encode(format), name, clean, skip_bad, lowercase, digits, *run)
    return Dataset(handle)


def write(data: Any, path: str | os.PathLike[str], *, y: Any = None, format: str = "auto") -> None:
    """Writes examples as a data file, which appears complete or not at all; :func:`read` and the command line read it.

    ``data`` is a :class:`Dataset`, with its targets, or whatever stands for ``X``, such as a list of trees or of rows
    with named columns; ``y`` are targets for these, numbers or strings. The format is found by the ending of ``path``
    (docs/formats.md).
    """
    targets = None
    if y is not None:
        own = enumerate(as_list(y).tolist())
        targets = [quote(value) if isinstance(value, str) else encode_value(value, i) for i, value in own]
    _espalier.dataset_write(to_dataset(data, targets, name="data")._handle, encode_path(path), encode(format))


# ------------------------------------------------------------------- columns


def to_dataset(
    X: Any, targets: Sequence[str] | None = None, *, columns: Columns = _ANY, run: Run = QUIET, name: str = "X"
) -> Dataset:
    """The examples ``X`` with targets, which are JSON values; ``name`` stands for ``X`` in messages.

    ``columns`` are those of the kernel: a list that has no names takes the first of theirs, and what the kernel takes
    decides what the values are where they could be several things.
    """
    if isinstance(X, Dataset) and targets is None:
        return X
    table = _table(X, columns, name)
    count = len(next(iter(table.values()))) if table else 0
    if count == 0:
        raise ValueError(f"{name} has no examples")
    if targets is not None and len(targets) != count:
        raise ValueError(f"{name} has {count} examples, but there are {len(targets)} targets")
    label = _target_name(table, targets is not None)
    if label is None:
        return _parse(encode(_join(table)), None, run, name)
    return _parse(encode(_join({label: list(targets or ["0"] * count), **table})), label, run, name)


def _target_name(columns: Container[str], labelled: bool) -> str | None:
    """The field of the target, where there must be one: a column may well be named as the target would be."""
    label = "y"
    while label in columns:
        label += "_"
    return label if labelled or label != "y" else None


def _line_form(names: Iterable[str]) -> str:
    """A line of JSON with a place for the value of each field."""
    return "{" + ",".join(quote(name).replace("%", "%%") + ":%s" for name in names) + "}\n"


def _join(fields: Mapping[str, Sequence[str]]) -> str:
    """Columns of JSON values as lines."""
    if len(fields) == 1:
        ((name, values),) = fields.items()
        prefix = "{" + quote(name) + ":"
        return prefix + ("}\n" + prefix).join(values) + "}\n"
    form = _line_form(fields)
    return "".join([form % row for row in zip(*fields.values(), strict=True)])


def _parse(lines: bytes | bytearray, target: str | None, run: Run, name: str) -> Dataset:
    arguments = (run.threads, 0, run.progress, None)
    label = None if target is None else encode(target)
    try:
        return Dataset(_espalier.dataset_parse(lines, encode(name), b"jsonl", label, *arguments))
    except ValueError as error:
        # Lines of the text that was made here mean nothing to whoever gave the examples.
        place = re.match(rf"{re.escape(name)}:(\d+):\d+: ", str(error))
        if place is None:
            raise
        raise ValueError(f"{name}[{int(place[1]) - 1}]: {str(error)[place.end() :]}") from None


def _table(X: Any, wanted: Columns, name: str) -> dict[str, list[str]]:
    """The columns of X as JSON values by name."""
    X = _examples(X, wanted)
    raw = None if hasattr(X, "tocsr") else _named_columns(X, wanted, name)  # some sparse matrices are dicts, too
    named = isinstance(X, Dataset) or raw is None or not set(raw).isdisjoint(wanted)
    if raw is not None and not named and all(map(all_numbers, raw.values())):
        # A table of numbers is a matrix, unless its columns are asked for by name.
        X, raw = [dict(zip(raw, row, strict=True)) for row in zip(*raw.values(), strict=True)], None
    if raw is None:
        kind, values = write_column(X, name, wanted.holds(None))
        if isinstance(X, (list, tuple)) and X:
            _refuse_number(X[0], name)
        return {wanted[0] if wanted else _DEFAULT_NAMES[kind]: values}
    lengths = {len(values) for values in raw.values()}
    if len(lengths) > 1:
        raise ValueError(f"the columns of {name} have different lengths: {', '.join(map(str, sorted(lengths)))}")
    only = wanted.holds(None) if len(raw) == 1 else ""
    return {
        column: write_column(values, f"{name}[{column!r}]", wanted.holds(column) or only)[1]
        for column, values in raw.items()
    }


def _examples(X: Any, wanted: Columns) -> Any:
    """X, as a list if it gives examples one by one."""
    if isinstance(X, (Code, Iterator)):
        X = list(X)
    if isinstance(X, (list, tuple)) and X and needs_rows(X[0], wanted):
        return [unit._asdict() if isinstance(unit, Unit) else unit for unit in X]
    return X


def needs_rows(first: Any, wanted: Columns) -> bool:
    """Whether functions of read_code are taken as rows of named columns: more than their trees is wanted."""
    return isinstance(first, Unit) and not {"tree"}.issuperset(wanted)


def _refuse_number(first: Any, name: str) -> None:
    if is_number(first):
        raise ValueError(f"{name}[0] is a number; an example is a tree, a sequence or a vector, be it of one number")


def _named_columns(X: Any, wanted: Columns, name: str) -> dict[str, list[Any]] | None:
    """The columns of a table (pandas, polars, pyarrow, a dict of lists, a list of dicts); None if X is no table."""
    if isinstance(X, Dataset):
        return {
            column: [json.loads(text) for text in X.column(column)] if kind == "vector" else X.column(column)
            for column, kind in X.columns.items()
        }
    if hasattr(X, "column_names") and hasattr(X, "column"):
        return {str(column): X.column(column).to_pylist() for column in X.column_names}
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return {str(column): list_of(X[column]) for column in X.columns}
    if isinstance(X, Mapping):
        return {str(column): list_of(values) for column, values in X.items()}
    if not isinstance(X, (list, tuple)) or not X or not _is_row(X[0], wanted):
        return None
    return _rows_to_columns(X, name)


def _is_row(value: Any, wanted: Columns) -> bool:
    """Whether an example is a row of named columns. For a kernel over trees that names none, a dict without a tree in
    it is a JSON document."""
    if not isinstance(value, Mapping) or is_vector(value) or kind_of(value) == "dict":
        return False
    if wanted.holds(None) != "tree" or not value.keys().isdisjoint([*wanted, "tree"]):
        return True
    return any(kind_of(part) not in (None, "json", "nested") or type(part) is tuple for part in value.values())


def _rows_to_columns(rows: Sequence[Any], name: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {str(key): [] for key in rows[0]}
    for i, row in enumerate(rows):
        _check_row(row, columns, name, i)
        for key, value in row.items():
            columns[str(key)].append(value)
    return columns


def _check_row(row: Any, columns: Mapping[str, Any], name: str, at: int) -> None:
    if not isinstance(row, Mapping):
        raise ValueError(f"{name}[0] is a row of named columns, but {name}[{at}] is {describe(row)}")
    if row.keys() != columns.keys():
        first, here = ", ".join(columns), ", ".join(map(str, row))
        raise ValueError(f"the columns of {name}[{at}] are {here or 'none'}; those of {name}[0] are {first}")
