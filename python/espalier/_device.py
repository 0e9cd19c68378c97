"""The GPU that does the dense algebra of Gaussian processes: opened once in a process, and only when it is needed."""

from __future__ import annotations

import errno
import os
import sys
import threading
import warnings
from typing import Any

from . import _espalier
from ._core import decode

DEVICES = ("auto", "cpu", "cuda")

_FORKED = "the GPU belongs to the process that this one was forked from; start processes by 'spawn' or 'forkserver'"


class _Device:
    """What became of opening it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.said: set[str] = set()
        self.process = 0  # which has tried to open it; 0: none has
        self.handle: Any = None
        self.reason = ""  # why there is none
        self.missing = False  # that is because the plugin is not installed, or there is no GPU

    def open(self) -> None:
        with self.lock:
            if self.process == 0:
                self.process = os.getpid()
                try:
                    self.handle = _espalier.device_open(b"cuda")
                except OSError as error:
                    self.reason = error.strerror or str(error)
                    self.missing = error.errno in (errno.ENOENT, errno.ENODEV)
            # Without a reason the parent has it, or was about to open it.
            if self.process != os.getpid() and not self.reason:
                self.handle, self.reason = None, _FORKED

    def warn(self, sentence: str) -> None:
        """Once in a process, at the line that called the package."""
        with self.lock:
            if sentence in self.said:
                return
            self.said.add(sentence)
        level, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
            level, frame = level + 1, frame.f_back
        warnings.warn(sentence, stacklevel=level)


_device = _Device()


def _after_fork() -> None:
    _device.lock = threading.Lock()  # a thread that is not in this process may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_device(device: object) -> None:
    if not isinstance(device, str) or device not in DEVICES:
        raise ValueError(f"device is {device!r}; allowed are 'auto', 'cpu' and 'cuda'")


def device_for(device: str, examples: int, matrix: bool = True) -> Any:
    """What a call over that many examples hands to the C module: a device, or None for the processor. ``matrix``:
    whether the call needs the matrix of all these examples. Warnings say why the CPU does the work; not where
    nobody asked for a GPU and there is none."""
    check_device(device)
    if device == "cpu" or (device == "auto" and not _espalier.device_pays(examples)):
        return None
    _device.open()
    if _device.handle is None:
        if device == "cuda" or not _device.missing:
            _device.warn(f"using the CPU: {_device.reason}")
        return None
    sentence = _espalier.device_fits(_device.handle, examples) if matrix else None
    if sentence is not None:
        _device.warn(decode(sentence))
    return _device.handle
