"""Mining and explicit features."""

from __future__ import annotations

import random

import numpy as np
import pytest
from reference import fragment_count, subsequence_count
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from espalier import SVC, Kernel, NystroemFeatures, PatternFeatures, PatternMiner

WORDS = [" ".join(random.Random(seed).choices("abcd", k=6)) for seed in range(40)]
CLASSES = ["x" if "a b" in words else "y" if "c c" in words else "z" for words in WORDS]


def test_patterns_are_counted_as_the_definition_says(questions):
    X, y = questions
    features = PatternFeatures(kernel="fsst(n=3)", tau=1, top=60).fit(X, y)
    matrix = features.transform(X)
    names = features.get_feature_names_out()
    assert matrix.shape == (len(X), len(names)) and len(names) == 60
    expected = [[fragment_count(name, x) for name in names] for x in X[:25]]
    assert (matrix[:25].toarray() == expected).all() and np.sum(expected) > 0
    for name, pattern in zip(names, features.patterns_):
        assert pattern.text == name
        assert pattern.examples == sum(fragment_count(name, x) > 0 for x in X)
        assert pattern.positive == sum(fragment_count(name, x) > 0 and c == "LOC" for x, c in zip(X, y))
    binary = PatternFeatures(kernel="fsst(n=3)", tau=1, top=60, values="binary").fit(X, y).transform(X)
    assert (binary.toarray() == (matrix.toarray() > 0)).all()


@pytest.mark.parametrize("gap", ["inf", "0"])
def test_subsequences_of_several_classes(gap):
    features = PatternFeatures(kernel=f"fseq(n=3, gap={gap})", tau=3, top=10).fit(WORDS, CLASSES)
    names = features.get_feature_names_out()
    assert len(set(names)) == len(names) <= 30 and {p.label for p in features.patterns_} == set("xyz")
    expected = [[subsequence_count(name, words, gap == "0") for name in names] for words in WORDS]
    assert (features.transform(WORDS).toarray() == expected).all() and np.sum(expected) > 0
    assert features.transform(["unknown words"]).nnz == 0


def test_features_of_the_kernel_make_the_kernel(questions):
    X, y = questions
    expression = "fsst(n=3, lambda=0.4)"
    Z = PatternFeatures(kernel=expression, values="kernel").fit(X, y).transform(X)
    model = SVC(kernel=expression, C=1).fit(X, y)
    linear = SVC(kernel="linear", C=1).fit(Z, y)
    np.testing.assert_allclose(model.decision_function(X), linear.decision_function(Z), atol=5e-3)


def test_miner(questions, tool, tmp_path):
    X, y = questions
    path = tmp_path / "data.jsonl"
    path.write_text("".join(f'{{"y": "{c}", "tree": "{x}"}}\n' for x, c in zip(X, y)))
    lines = tool("mine", "-q", "-k", "fsst(n=3)", "--metric", "gtest", "--top", "20", path).splitlines()
    mined = PatternMiner(kernel="fsst(n=3)", metric="gtest", top=20).fit(X, y).patterns_
    assert [f"{p.value:.17g}\t{p.examples}\t{p.positive}\t{p.text}" for p in mined] == lines
    other = PatternMiner(positive="HUM", top=3).fit(X, y).patterns_
    assert {p.label for p in other} == {"HUM"} and len(other) == 3


def test_odd_patterns_are_found_again():
    words = [["a b", "("], ["a b", "x"], ["c|d", "\\"], ["c|d", "y"]]
    features = PatternFeatures(kernel="fseq(n=2)").fit(words, [0, 0, 1, 1])
    assert sorted(features.get_feature_names_out()) == ["a\\ b", "c\\|d"]
    assert features.transform(words).toarray().sum() == 4
    trees = ["(A ...)", "(A ...)", "(B \\()", "(B \\()"]
    features = PatternFeatures().fit(trees, [0, 0, 1, 1])
    assert sorted(features.get_feature_names_out()) == ["(A \\...)", "(B \\()"]
    assert features.transform(trees).toarray().sum() == 4


def test_features_for_linear_learners(questions):
    X, y = questions
    for features in (PatternFeatures(top=50), NystroemFeatures(n_components=40)):
        for learner in (LinearSVC(), SGDClassifier(random_state=0)):
            assert cross_val_score(make_pipeline(features, learner), X, y, cv=3).mean() > 0.8


@pytest.mark.parametrize(
    "params, message",
    [
        ({"kernel": "sst"}, "selects no patterns"),
        ({"metric": "best"}, "unknown metric 'best'"),
        ({"tau": -1}, "tau is '-1'"),
        ({"top": 0}, "top is 0; allowed is a whole number >= 1"),
        ({"positive": "q"}, "no example is of class 'q'"),
        ({"values": "all"}, "values is 'all'"),
        ({"tau": 1e9}, "no pattern was found"),
    ],
)
def test_bad_mining_is_told(params, message, questions):
    with pytest.raises(ValueError, match=message):
        PatternFeatures(**params).fit(*questions)


def test_features_of_a_sum_are_refused(questions):
    features = PatternFeatures(kernel="2*fsst").fit(*questions)
    with pytest.raises(ValueError, match="features need one"):
        features.transform(questions[0])


# ------------------------------------------------------------------- Nystroem


def test_all_examples_as_landmarks_give_the_kernel(questions):
    X = questions[0]
    Z = NystroemFeatures(n_components=len(X)).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, Kernel("norm(sst)")(X), atol=1e-9)


def test_more_landmarks_leave_less(questions):
    X = questions[0]
    gram = Kernel("norm(sst)")(X)
    errors = []
    for count in (5, 20, 60):
        features = NystroemFeatures(n_components=count).fit(X)
        assert len(set(features.component_indices_.tolist())) == len(features.component_indices_) == count
        Z = features.transform(X)
        errors.append(np.trace(gram - Z @ Z.T))
        # Landmarks are their own best approximation.
        at = features.component_indices_
        np.testing.assert_allclose(Z[at] @ Z[at].T, gram[np.ix_(at, at)], atol=1e-9)
    assert errors[0] > errors[1] > errors[2] > 0
    best = np.sort(np.linalg.eigvalsh(gram))[:-60].sum()
    assert errors[2] < 4 * best


def test_landmarks_depend_on_the_seed_alone(questions):
    X = questions[0]
    first, again, other = (NystroemFeatures(n_components=9, seed=s).fit(X).component_indices_ for s in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


def test_duplicates_are_no_landmarks_twice():
    features = NystroemFeatures(n_components=10).fit(["(A a)", "(A b)"] * 50)
    assert features.transform(["(A a)"]).shape == (1, 2)
    assert len(features.get_feature_names_out()) == 2
    with pytest.raises(ValueError, match="n_components is 0"):
        NystroemFeatures(n_components=0).fit(["(A a)"])
    with pytest.raises(ValueError, match="nothing to approximate"):
        NystroemFeatures(kernel="linear").fit([[0.0], [0.0]])
