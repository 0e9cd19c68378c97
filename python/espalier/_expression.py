"""The numbers of a kernel expression by name.

The C library reads expressions; it also prints them in full, in one form. What is done here relies on that form only:
find the values in it, with their places, and put others there.

    norm(sst(tree, lambda=0.4, alpha=1)) + 0.3*poly(x, degree=3)^2
                   lambda      alpha       weight      degree   power

A name that several kernels have gets the kernel's in front ("sst.lambda"), with a number where that occurs more than
once ("sst2.lambda", "weight2"). So names depend on the form of an expression and never on its values.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

_QUOTED = r'"(?:\\.|[^"\\])*"'
_NUMBER = r"[0-9][0-9.]*(?:e[-+]?[0-9]+)?"
_KERNEL = re.compile(r"([A-Za-z_]\w*)\(")
_COLUMN = re.compile(rf"({_QUOTED}|[^\s\"=,().]+)(?=, |\))", re.S)
_ARGUMENT = re.compile(rf"([A-Za-z_]\w*(?:\.(?:{_QUOTED}|[^\"=,()]+))?)=(\{{(?:\\.|[^}}\\])*\}}|[^,(){{}}]+)", re.S)
_WEIGHT = re.compile(rf"({_NUMBER})\*")
_POWER = re.compile(rf"\^({_NUMBER})")


class Value(NamedTuple):
    """One value of an expression."""

    kernel: str  # "sst", or "" of weights and powers
    occurrence: int  # of that kernel, or of weights or powers, from 1
    name: str  # "lambda", "lambda.NP", "weight", "power"
    start: int
    end: int


class Scan(NamedTuple):
    """What an expression, as the library prints it, consists of."""

    values: dict[str, Value]
    columns: list[str]  # that it names, in their order


def scan(text: str) -> Scan:
    """Finds all values and columns. O(characters)."""
    found: list[Value] = []
    columns: dict[str, None] = {}
    counts: Counter[str] = Counter()
    at = 0
    while at < len(text):
        if (match := _KERNEL.match(text, at)) is not None:
            at = match.end()
            if match[1] != "norm":
                counts[match[1]] += 1
                at = _scan_arguments(text, at, match[1], counts[match[1]], found, columns)
        elif (match := _WEIGHT.match(text, at) or _POWER.match(text, at)) is not None:
            name = "power" if text[at] == "^" else "weight"
            counts[name] += 1
            found.append(Value("", counts[name], name, *match.span(1)))
            at = match.end()
        else:
            at += 1
    return Scan(_names(found, counts), list(columns))


def _scan_arguments(
    text: str, at: int, kernel: str, occurrence: int, found: list[Value], columns: dict[str, None]
) -> int:
    if (match := _COLUMN.match(text, at)) is not None:
        name = match[1]
        columns[re.sub(r"\\(.)", r"\1", name[1:-1], flags=re.S) if name[0] == '"' else name] = None
        at = match.end()
    while text[at] != ")":
        if (match := _ARGUMENT.match(text, at)) is None:
            at += 1
            continue
        found.append(Value(kernel, occurrence, match[1], *match.span(2)))
        at = match.end()
    return at + 1


def _names(found: list[Value], counts: Counter[str]) -> dict[str, Value]:
    same = Counter(value.name for value in found)
    names = {}
    for value in found:
        number = str(value.occurrence) if counts[value.kernel or value.name] > 1 else ""
        if not value.kernel:
            names[value.name + number] = value
        else:
            names[value.name if same[value.name] == 1 else f"{value.kernel}{number}.{value.name}"] = value
    return names


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
