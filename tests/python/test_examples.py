"""The examples in docstrings."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = [
    "_core", "_data", "_estimators", "_expression", "_features", "_folds", "_gp_kernel", "_kernel", "_load", "_model",
    "_processes", "_targets", "dask",
]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    if module == "dask":
        pytest.importorskip("dask")
    results = doctest.testmod(importlib.import_module(f"espalier.{module}"))
    assert results.failed == 0
