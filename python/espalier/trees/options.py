"""Options of conversions."""

from __future__ import annotations


def choose(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuses a value that an option does not have."""
    if value not in allowed:
        raise ValueError(
            f"{name}={value!r} is not known; it may be {', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}"
        )
