"""What was learned: the model of the library, with its file format."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from . import _espalier
from ._core import QUIET, Run, decode, encode, encode_path
from ._data import Dataset, to_dataset
from ._explain import Explanation, ModelExplanation, read_example, read_model
from ._expression import scan
from ._trees import Tree

Array = np.ndarray[Any, Any]

_SIGNS = {"both": 0, "for": 1, "against": -1}


class Model:
    """A model as the library holds it: immutable, usable by several threads, pickled as the bytes of its file.

    Estimators keep theirs as ``model_``. ``str(model)`` tells about it, as ``espalier info`` does.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        learner, kernel, classes, summary, finished = _espalier.model_info(handle)
        self.learner: str = decode(learner)
        """The name of the learner: ``"svm"``, ``"svr"``, ``"perceptron"``, ``"gp"`` ..."""
        self.kernel: str = decode(kernel)
        """The kernel expression in full, with the names of its columns."""
        self.classes: list[str] = [decode(name) for name in classes]
        """The classes in the order of the library; none of a regression."""
        self.finished: bool = finished
        """False for the checkpoint of an online learner."""
        self._summary = decode(summary)
        self._columns = scan(self.kernel).columns

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Model:
        """Reads a model file."""
        return Model(_espalier.model_read(encode_path(path)))

    @staticmethod
    def from_bytes(data: bytes) -> Model:
        """Reads the bytes of a model file."""
        return Model(_espalier.model_parse(data, b"model"))

    def to_bytes(self) -> bytes:
        """The bytes of its file."""
        data: bytes = _espalier.model_bytes(self._handle)
        return data

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, which appears complete or not at all; ``espalier predict`` reads it."""
        _espalier.model_write(self._handle, encode_path(path))

    @property
    def summary(self) -> dict[str, str]:
        """Facts about the model and how it was trained; the classes are in :attr:`classes`."""
        lines = (line.partition("\t") for line in self._summary.splitlines())
        return {key: value for key, _, value in lines if key != "class"}

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the learner as texts."""
        known = {name for learner, _, table in _espalier.learners() if learner == self.learner for name, *_ in table}
        # Split before names only: the labels of class-weight may have blanks.
        start = "|".join(map(re.escape, [*known, "seed"]))
        parts = re.split(rf" (?=(?:{start})=)", self.summary.get("settings", ""))
        return {name: value for name, equal, value in (part.partition("=") for part in parts) if equal}

    def predict(self, X: Any, what: str = "scores", run: Run = QUIET) -> Array:
        """``"scores"`` of each example, its ``"classes"`` by number, or ``"probabilities"``, all in the order of
        :attr:`classes`. Scores have one column for a regression or for two classes, of which the second is positive.
        The ``"moments"`` of a Gaussian process are the score, the variance of the target and that of the latent
        function; variances of other models are -1."""
        data = to_dataset(X, columns=self._columns, run=run)
        classes = len(self.classes)
        shape = {"classes": (len(data),), "probabilities": (len(data), classes), "moments": (len(data), 3)}
        out: Array = np.empty(
            shape.get(what, (len(data), classes if classes > 2 else 1)), np.int64 if what == "classes" else float
        )
        _espalier.predict(self._handle, data._handle, what, out, *run)
        return out

    def covariance(self, X: Any, latent: bool = False, run: Run = QUIET) -> Array:
        """Of a Gaussian process: the covariances of all examples, with noise on the diagonal unless ``latent``; for
        more than two classes a matrix for each."""
        data = to_dataset(X, columns=self._columns, run=run)
        shape = (len(data), len(data))
        out: Array = np.empty((len(self.classes), *shape) if len(self.classes) > 2 else shape)
        _espalier.covariance(self._handle, data._handle, latent, out, *run)
        return out

    def samples(self, X: Any, count: int = 1, seed: int = 1, latent: bool = False, run: Run = QUIET) -> Array:
        """Of a Gaussian process: draws from the joint posterior of all examples, as ``espalier predict --samples`` with
        this seed. A row per example and a column per draw: targets, the number of a class in :attr:`classes`, or if
        ``latent`` the function; for more than two classes that is a matrix per example, with a row for each."""
        data = to_dataset(X, columns=self._columns, run=run)
        several = latent and len(self.classes) > 2
        out: Array = np.empty((len(data), len(self.classes), max(count, 0)) if several else (len(data), max(count, 0)))
        _espalier.samples(self._handle, data._handle, count, seed, latent, out, *run)
        return out

    _explainer: Any = None  # made when it is asked for

    def explain(
        self,
        x: Any = None,
        *,
        label: str | None = None,
        top: int = 20,
        nodes: bool = True,
        max_size: int = 0,
        sign: str = "both",
        effort: int = 0,
        run: Run = QUIET,
    ) -> Explanation | ModelExplanation:
        """What decided about the example ``x`` or, without one, which features weigh most in the model; as
        ``espalier explain`` (docs/explain.md).

        ``label``: the class to speak for; of an example the predicted one unless told, of a model all. ``top``:
        features of a list at most; an example has one list of those that push its score up and one of the others.
        ``nodes``: also the shares of the nodes of the example's tree. ``max_size``: productions of a fragment or tokens
        of a pattern at most; 0 for any. ``sign``: ``"for"`` or ``"against"`` leave features of a model out.
        ``effort``: fragments that a search may grow; 0 for the library's limit.
        """
        for name, value, least in (("top", top, 1), ("max_size", max_size, 0), ("effort", effort, 0)):
            if not hasattr(value, "__index__") or not least <= value < 2**63:
                raise ValueError(f"{name} is {value!r}; allowed is a whole number >= {least}")
        if sign not in _SIGNS:
            raise ValueError(f"sign is {sign!r}; allowed are {', '.join(map(repr, _SIGNS))}")
        if self._explainer is None:
            self._explainer = _espalier.explainer_new(self._handle, *run)
        data = None if x is None else self._example(x, run)
        if data is not None and label is None and self.classes:
            label = self.classes[self.predict(data, "classes", run)[0]]
        lines = _espalier.explain(
            self._explainer, None if data is None else data._handle, 0, None if label is None else encode(label),
            top, max_size, _SIGNS[sign], effort, nodes and data is not None, *run,
        )  # fmt: skip
        return read_model(decode(lines)) if data is None else read_example(decode(lines))

    def _example(self, x: Any, run: Run) -> Dataset:
        listed = isinstance(x, (list, tuple)) and len(x) > 0 and isinstance(x[0], (str, Tree))
        if isinstance(x, Dataset) or (listed and str(x[0]).startswith("(")):
            raise ValueError("explain takes one example; of several: [model.explain(x) for x in X]")
        return to_dataset([x], columns=self._columns, run=run, name="x")

    def report(
        self,
        data: Any,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        data_name: str | None = None,
        examples: int = 40,
        top: int = 12,
        run: Run = QUIET,
    ) -> None:
        """Writes a page (HTML) about the model to ``path``: what it is, the features that decide in it and, unless
        ``data`` is None, how good it is on them and what decided about ``examples`` of them (docs/report.md). Data with
        targets are a :class:`Dataset`; estimators take ``X`` and ``y``. ``data_name``: what the data are called on the
        page. ``top``: features of a list at most."""
        for name, value in (("examples", examples), ("top", top)):
            if not hasattr(value, "__index__") or not 1 <= value < 2**63:
                raise ValueError(f"{name} is {value!r}; allowed is a whole number >= 1")
        handle = None if data is None else to_dataset(data, columns=self._columns, run=run)._handle
        heading, called = (None if name is None else encode(name) for name in (title, data_name))
        _espalier.report(self._handle, handle, encode_path(path), heading, called, examples, top, *run)

    def __reduce__(self) -> Any:
        return Model.from_bytes, (self.to_bytes(),)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: Any) -> Model:
        return self

    def __str__(self) -> str:
        return self._summary

    def __repr__(self) -> str:
        return f"<Model: {self.learner}, {self.kernel}>"

    def _repr_html_(self) -> str:
        from ._svg import model_html

        return model_html(self._summary)
