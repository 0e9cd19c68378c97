"""The numbers of a kernel expression by name.

The C library reads expressions; it also prints them in full, in one form. What is done here relies on that form only:
find the values in it, with their places, and put others there.

    norm(sst(tree, lambda=0.4, alpha=1)) + 0.3*poly(x, degree=3)^2
                   lambda      alpha       weight      degree   power

Names are those of the library (``--fix``, ``espalier info``): a name that several kernels have gets the kernel and its
column in front, as in ``sst(src).lambda``, with a number where these are the same, as in ``sst()#2.lambda``. Several
weights are ``weight.1`` and ``weight.2``, in the order in which the library computes them: what is weighted comes
before its weight. Labels have no quotes there: ``lambda.PRP$``. So names depend on the form of an expression and never
on its values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

from . import _espalier

_QUOTED = r'"(?:\\.|[^"\\])*"'
_NUMBER = r"[0-9][0-9.]*(?:e[-+]?[0-9]+)?"
_KERNEL = re.compile(r"([A-Za-z_]\w*)\(")
_COLUMN = re.compile(rf"({_QUOTED}|[^\s\"=,().]+)(?=, |\))", re.S)
_ARGUMENT = re.compile(rf"([A-Za-z_]\w*(?:\.(?:{_QUOTED}|[^\"=,()]+))?)=(\{{(?:\\.|[^}}\\])*\}}|[^,(){{}}]+)", re.S)
_WEIGHT = re.compile(rf"({_NUMBER})\*")
_POWER = re.compile(rf"\^({_NUMBER})")


class Value(NamedTuple):
    """One value of an expression."""

    leaf: int  # the number of the kernel, or -1 for weights and powers
    name: str  # "lambda", "lambda.NP", "weight", "power"
    start: int
    end: int


class Leaf(NamedTuple):
    """One kernel of an expression."""

    kernel: str  # "sst"
    column: str | None


class Columns(list[str]):
    """The columns that an expression names, in their order, and what they have to hold."""

    def __init__(self, leaves: Sequence[Leaf] = ()) -> None:
        super().__init__(dict.fromkeys(leaf.column for leaf in leaves if leaf.column is not None))
        takes = {name: set(types) for name, types in _espalier.kernel_takes()}
        self._types: dict[str | None, set[str]] = {}
        for leaf in leaves:
            self._types[leaf.column] = self._types.get(leaf.column, {*takes[leaf.kernel]}) & takes[leaf.kernel]

    def also(self, name: str | None) -> Columns:
        """These and one more, which no kernel is over; None for no more."""
        columns = copy(self)
        columns.extend([] if name is None else [name])
        return columns

    def holds(self, column: str | None) -> str:
        """``"tree"`` or ``"sequence"`` if all kernels over this column take nothing else, else an empty string. None
        stands for the only column of a list: all kernels are over it."""
        types = self._types.get(column, set())
        if column is None:
            types = set.intersection(*self._types.values()) if self._types else set()
        return next(iter(types)) if len(types) == 1 else ""


class Scan(NamedTuple):
    """What an expression, as the library prints it, consists of."""

    values: dict[str, Value]
    columns: Columns
    leaves: list[Leaf]


def scan(text: str) -> Scan:
    """Finds all values and columns. O(characters)."""
    found: list[Value] = []
    leaves: list[Leaf] = []
    waiting: list[list[Value]] = [[]]  # per open bracket: weights whose operand is not yet complete
    at = 0
    while at < len(text):
        complete = False
        if (match := _KERNEL.match(text, at)) is not None:
            if match[1] == "norm":
                waiting.append([])
                at = match.end()
            else:
                at = _scan_leaf(text, match, found, leaves)
                complete = True
        elif (match := _WEIGHT.match(text, at)) is not None:
            waiting[-1].append(Value(-1, "weight", *match.span(1)))
            at = match.end()
        elif text[at] == "(":
            waiting.append([])
            at += 1
        elif text[at] == ")":
            waiting.pop()
            complete = True
            at += 1
        else:
            at += 1
        if complete:
            if (match := _POWER.match(text, at)) is not None:
                found.append(Value(-1, "power", *match.span(1)))
                at = match.end()
            found.extend(reversed(waiting[-1]))
            waiting[-1].clear()
    return Scan(_names(found, leaves), Columns(leaves), leaves)


def _scan_leaf(text: str, start: re.Match[str], found: list[Value], leaves: list[Leaf]) -> int:
    at, column = start.end(), None
    if (match := _COLUMN.match(text, at)) is not None:
        column = _plain(match[1])
        at = match.end()
    leaves.append(Leaf(start[1], column))
    while text[at] != ")":
        if (match := _ARGUMENT.match(text, at)) is None:
            at += 1
            continue
        found.append(Value(len(leaves) - 1, _plain(match[1]), *match.span(2)))
        at = match.end()
    return at + 1


def _plain(name: str) -> str:
    """A column, or a parameter of a label, without the quotes that it has in an expression: ``lambda."PRP$"``."""
    front, quote, label = name.partition('"')
    return front + re.sub(r"\\(.)", r"\1", label[:-1], flags=re.S) if quote and label.endswith('"') else name


def _names(found: list[Value], leaves: list[Leaf]) -> dict[str, Value]:
    users: dict[str, set[int]] = {}
    for value in found:
        users.setdefault(value.name.partition(".")[0], set()).add(value.leaf)
    fronts = [leaf_name(leaves, number) for number in range(len(leaves))]
    operators = Counter(value.name for value in found if value.leaf < 0)
    numbers: Counter[str] = Counter()
    names = {}
    for value in found:
        name = value.name
        if value.leaf < 0:
            numbers[name] += 1
            name += f".{numbers[name]}" if operators[name] > 1 else ""
        elif len(users[name.partition(".")[0]]) > 1:
            name = f"{fronts[value.leaf]}.{name}"
        names[name] = value
    return names


def leaf_name(leaves: list[Leaf], number: int) -> str:
    """A text such as "sst(src)", or "sst()#2" where several are alike."""
    leaf = leaves[number]
    name = f"{leaf.kernel}({leaf.column or ''})"
    return name if leaves.count(leaf) == 1 else f"{name}#{leaves[: number + 1].count(leaf)}"


def read_value(text: str) -> int | float | str:
    """A value of an expression for Python: a number where it is one."""
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def write_value(value: object) -> str:
    """The other way round; NumPy's numbers are numbers."""
    if isinstance(value, str):
        return value
    if hasattr(value, "__index__"):
        return str(int(value))
    if hasattr(value, "__float__"):
        return repr(float(value))
    raise ValueError(f"{value!r} is no value of a kernel; allowed are numbers and strings")


def replace(text: str, changes: dict[str, str]) -> str:
    """The expression with other values. A name that is not in :func:`scan` but is that of a parameter of several
    kernels sets it in all of them. An unknown name is a ``ValueError``."""
    values = scan(text).values
    changes = {_plain(name): new for name, new in changes.items()}
    edits: dict[tuple[int, int], str] = {}
    # Names of single values come last, so that they win over those of many.
    for name, new in sorted(changes.items(), key=lambda change: change[0] in values):
        meant = [values[name]] if name in values else [v for v in values.values() if v.name == name]
        if not meant:
            raise ValueError(f"the kernel {text} has no parameter {name!r}; it has {', '.join(values) or 'none'}")
        edits.update({(v.start, v.end): new for v in meant})
    parts, at = [], 0
    for (start, end), new in sorted(edits.items()):
        parts += [text[at:start], new]
        at = end
    return "".join(parts) + text[at:]
