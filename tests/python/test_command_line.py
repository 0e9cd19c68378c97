"""The same data, kernels and models in Python and on the command line: equal to the last bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn.svm
from sklearn.model_selection import cross_val_predict, cross_val_score

import espalier
from espalier import SVC, SVR, DagPerceptron, Folds, Kernel, load


@pytest.fixture
def data(questions, tmp_path):
    def write(X, y, name="data.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps({"y": c, "tree": x}) + "\n" for x, c in zip(X, y)))
        return path

    return write


def test_gram(tool, questions, data, tmp_path):
    X, y = questions
    tool("gram", "-q", "-k", "norm(sst) + 0.5*ptk", "-o", tmp_path / "gram.npy", data(X, y))
    assert (np.load(tmp_path / "gram.npy") == Kernel("norm(sst) + 0.5*ptk")(X)).all()


CASES = {
    "svm": (SVC(C=10, probability=True, seed=5), ["-C", "10", "--probability", "--seed", "5"]),
    "ovo": (SVC(multiclass="ovo", class_weight="balanced"), ["--multiclass", "ovo", "--class-weight", "balanced"]),
    "svr": (SVR(C=2, epsilon=0.2), ["-C", "2", "--epsilon", "0.2"]),
    "perceptron": (DagPerceptron(epochs=3, shuffle=True, seed=9), ["--epochs", "3", "--shuffle", "--seed", "9"]),
    "vote": (DagPerceptron(vote=True), ["--vote"]),
}


@pytest.mark.parametrize("case", CASES)
def test_models(case, tool, questions, data, tmp_path):
    X, y = questions
    estimator, options = CASES[case]
    y = list(range(len(X))) if case == "svr" else ["ABC"[len(x) % 3] for x in X] if case == "ovo" else y
    path, model = data(X, y), tmp_path / "tool.model"
    tool("train", "-q", "-l", estimator._learner, "-k", "norm(sst)", *options, "-o", model, path)
    estimator.fit(X, y).save(tmp_path / "python.model")
    assert (tmp_path / "python.model").read_bytes() == model.read_bytes() == estimator.model_.to_bytes()
    loaded = load(model)
    if case == "svr":
        assert list(map(float, tool("predict", "-q", model, path).split())) == loaded.predict(X).tolist()
        return
    lines = [line.split("\t") for line in tool("predict", "-q", "--all-scores", model, path).splitlines()]
    assert [line[0] for line in lines] == loaded.predict(X).tolist()
    found = loaded.decision_function(X).reshape(len(X), -1)
    assert [[float(score) for score in line[1:]] for line in lines] == found.tolist()
    if case == "svm":
        lines = [
            line.split("\t")
            for line in tool("predict", "-q", "--probability", "--all-scores", model, path).splitlines()
        ]
        assert [[float(chance) for chance in line[1:]] for line in lines] == loaded.predict_proba(X).tolist()


def test_cross_validation(tool, questions, data):
    X, y = questions
    accuracy = float(
        tool("cv", "-q", "-k", "norm(sst)", "-C", "10", "--folds", "4", "--seed", "3", data(X, y)).split()[1]
    )
    for estimator in (SVC(C=10), sklearn.svm.SVC(kernel=Kernel("norm(sst)"), C=10)):
        predicted = cross_val_predict(estimator, X, y, cv=Folds(4, seed=3))
        assert np.mean(predicted == np.array(y)) == accuracy


def test_cross_validation_on_questions(tool, real_data, tmp_path):
    """Six classes: scikit-learn's machine is one-vs-one, and with break_ties settles equal votes as ours does."""
    path = real_data / "questions" / "train.jsonl.gz"
    questions = espalier.read(path, target="coarse")
    X, y = questions.column("tree"), questions.target
    kernel = Kernel("norm(sst(lambda=0.4))")
    for estimator, multiclass in (
        (SVC(kernel=kernel, C=10), "ovr"),
        (sklearn.svm.SVC(kernel=kernel, C=10, break_ties=True), "ovo"),
    ):
        options = [
            "-q",
            "--target",
            "coarse",
            "-k",
            "norm(sst(tree, lambda=0.4))",
            "-C",
            "10",
            "--multiclass",
            multiclass,
        ]
        tool("cv", *options, "--predictions", tmp_path / "predictions", path)
        expected = np.array([line.split("\t")[0] for line in (tmp_path / "predictions").read_text().splitlines()])
        fold = Folds(5).numbers(y)
        by_fold = [np.mean(expected[fold == f] == y[fold == f]) for f in range(5)]
        assert cross_val_score(estimator, X, y, cv=Folds(5)).tolist() == by_fold


def test_the_package_carries_the_tool():
    carried = (Path(espalier.__file__).parent / "bin" / "espalier").exists()  # not in the source tree
    command = [sys.executable, "-m", "espalier", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if carried:
        assert (done.returncode, done.stdout) == (0, f"espalier {espalier.__version__}\n")
    else:
        assert done.returncode == 1 and "'make' builds it" in done.stderr
