"""What every call of the C module needs: text as bytes and back, paths, and how a call runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

Progress = Callable[[str, float], object]
"""Called with the stage and the fraction that is done of it (negative if unknown), at most twenty times a second. What
it raises ends the call."""


_ESCAPED = re.compile(rb"\xed([\xb2\xb3])([\x80-\xbf])")


def encode(text: str) -> bytes:
    """UTF-8, in which lone surrogates have no place. Those that stand for a byte (as of ``os.fsdecode``) become that
    byte, the others three bytes that :func:`decode` turns back into them."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        whole = text.encode(errors="surrogatepass")
        return _ESCAPED.sub(lambda match: bytes([match[2][0] + (0x40 if match[1] == b"\xb3" else 0)]), whole)


def decode(text: bytes) -> str:
    """The other way round; any bytes are taken, since data files of the command line may hold any."""
    for errors in ("strict", "surrogatepass", "surrogateescape"):
        try:
            return text.decode(errors=errors)
        except UnicodeDecodeError:
            pass
    raise AssertionError("surrogateescape takes all bytes")


def encode_path(path: str | os.PathLike[str]) -> bytes:
    """A file's name for the library, for which "-" would be standard input or output."""
    name = os.fsencode(path)
    return b"./-" if name == b"-" else name


class Run(NamedTuple):
    """How a long call runs: the last arguments of functions of the C module."""

    threads: int
    memory: int
    progress: Progress | None
    device: Any = None  # from _device.device_for; None for the processor

    @staticmethod
    def of(threads: int | None, memory: int | None, progress: Progress | None, share: int = 1) -> Run:
        """Checks what users give. None stands for 0; -1 threads are all, as in scikit-learn. Without a limit of memory,
        what the machine has is one, divided by ``share``."""
        for name, value, least, most in (("threads", threads, -1, 2**31), ("memory", memory, 0, 2**63)):
            if value is not None and not (hasattr(value, "__index__") and least <= value < most):
                raise ValueError(f"{name} is {value!r}; allowed is a whole number >= 0")
        if progress is not None and not callable(progress):
            raise ValueError(f"progress is {progress!r}; allowed is a function of a stage and a fraction, or None")
        return Run(max(0, int(threads or 0)), int(memory or _machine_memory() // share), progress)


def _machine_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 0  # no limit


QUIET = Run(0, 0, None)
