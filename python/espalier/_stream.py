"""Examples that come one by one, as a dataset of the library.

The library builds a dataset from one text, not piece by piece. So each example becomes a line of that text at once and
may be forgotten; the text is packed as it grows, since trees repeat themselves, and the library unpacks it as it reads.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

from ._core import Run, encode
from ._data import (
    _ANY,
    _DEFAULT_NAMES,
    Dataset,
    _check_row,
    _is_row,
    _line_form,
    _parse,
    _refuse_number,
    _target_name,
    needs_rows,
)
from ._expression import Columns
from ._trees import Unit
from ._values import ALLOWED, describe, kind_in_column, quote, two_kinds, write_value

_BATCH = 1 << 18  # characters that are packed at once


def stream_dataset(
    examples: Iterable[tuple[Any, str | None]], *, columns: Columns = _ANY, run: Run, name: str = "X"
) -> Dataset:
    """Examples with their targets, which are JSON values, or with None each.

    What a column holds is decided by the first value that is not an empty string; ``columns`` and ``name`` as of
    :func:`to_dataset`.
    """
    lines, rows = _PackedLines(), None
    for at, (example, target) in enumerate(examples):
        if rows is None:
            rows = _Rows(example, target is not None, columns, name)
        lines.add(rows.line(example, target, at))
    if rows is None:
        raise ValueError(f"{name} has no examples")
    return _parse(lines.finish(), rows.target, run, name)


class _PackedLines:
    """A text that is packed by gzip as it grows."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(1, wbits=31)  # fastest; with the header of gzip
        self._packed = bytearray()
        self._batch: list[str] = []
        self._size = 0

    def add(self, line: str) -> None:
        self._batch.append(line)
        self._size += len(line)
        if self._size >= _BATCH:
            self._pack()

    def _pack(self) -> None:
        self._packed += self._packer.compress(encode("".join(self._batch)))
        self._batch.clear()
        self._size = 0

    def finish(self) -> bytearray:
        self._pack()
        self._packed += self._packer.flush()
        return self._packed


class _Rows:
    """Examples as lines; the first one says which columns there are."""

    def __init__(self, first: Any, labelled: bool, wanted: Columns, name: str) -> None:
        self._name = name
        self._units = needs_rows(first, wanted)
        if self._units:
            first = first._asdict()
        self._named = _is_row(first, wanted)
        if self._named:
            self._columns = {str(key): _Column(f"{name}[{str(key)!r}]", wanted.holds(str(key))) for key in first}
        else:
            _refuse_number(first, name)
            column = _Column(name, wanted.holds(None))
            column.write(first, 0)
            self._columns = {wanted[0] if wanted else _DEFAULT_NAMES[column.holds or "sequence"]: column}
        self.target = _target_name(self._columns, labelled)
        self._form = _line_form([*([] if self.target is None else [self.target]), *self._columns])

    def line(self, example: Any, target: str | None, at: int) -> str:
        if self._units and isinstance(example, Unit):
            example = example._asdict()
        if self._named:
            _check_row(example, self._columns, self._name, at)
            values = [column.write(example[key], at) for key, column in self._columns.items()]
        else:
            values = [column.write(example, at) for column in self._columns.values()]
        return self._form % (*([] if self.target is None else [target or "0"]), *values)


class _Column:
    """The values of a column as JSON. What it holds ("tree", "sequence" or "vector") is empty until it is known."""

    def __init__(self, name: str, wants: str) -> None:
        self._name = name
        self._wants = wants
        self.holds = ""
        self._decided = 0, ""  # the example that has decided, and what it is

    def write(self, value: Any, at: int) -> str:
        kind = kind_in_column(value, self._name, at, self._wants)
        if not self.holds:
            if kind == "text" and not value:
                return quote(value)
            trees = kind == "tree" or (kind == "text" and not self._wants and value.startswith("("))
            self.holds = "tree" if trees else "vector" if kind == "vector" else self._wants or "sequence"
            self._decided = at, describe(value)
        if kind not in ALLOWED[self.holds]:
            raise two_kinds(self._name, *self._decided, at, value)
        return write_value(self.holds, value, self._name, at)
