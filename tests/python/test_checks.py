"""The checks that scikit-learn has for estimators, with kernels of vectors, as the checks know no trees."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_checks

from espalier import (
    SVC,
    SVR,
    DagPerceptron,
    GPClassifier,
    GPRegressor,
    GramTransformer,
    Index,
    NystroemFeatures,
    OneClassSVM,
)
from espalier._tags import ExampleTags

# What does not make sense where examples are no rows of a matrix, or is said in other words.
NOT_MEANT = {
    "check_n_features_in": "features have names and are not counted",
    "check_n_features_in_after_fitting": "features have names and are not counted",
    "check_estimators_partial_fit_n_features": "features have names and are not counted",
    "check_dtype_object": "objects may be trees",
    "check_fit2d_predict1d": "the message says the same in other words",
    "check_fit2d_1sample": "the message says the same in other words",
    "check_class_weight_classifiers": "made for classifiers that minimise a loss",
    "check_decision_proba_consistency": "probabilities also depend on the variance of the latent function",
    "check_classifiers_one_label": "one class is an error here",
    "check_classifiers_one_label_sample_weights": "one class is an error here",
}


class Vectors(ExampleTags):
    """The tags of estimators that are made for vectors, so that all checks are made."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        tags.input_tags.string = tags.no_validation = False
        return tags

    def _more_tags(self) -> dict[str, Any]:
        return {**super()._more_tags(), "X_types": ["2darray", "sparse"], "no_validation": False}


class VectorSVC(Vectors, SVC):
    pass


class VectorOneClass(Vectors, OneClassSVM):
    pass


class VectorSVR(Vectors, SVR):
    pass


class VectorPerceptron(Vectors, DagPerceptron):
    pass


class VectorGPRegressor(Vectors, GPRegressor):
    pass


class VectorGPClassifier(Vectors, GPClassifier):
    pass


class VectorNystroem(Vectors, NystroemFeatures):
    pass


class VectorGram(Vectors, GramTransformer):
    pass


class VectorIndex(Vectors, Index):
    pass


def _cases() -> list[Any]:
    estimators: list[BaseEstimator] = [
        VectorSVC(kernel="rbf(gamma=0.1)", C=10, threads=1),
        VectorSVR(kernel="rbf(gamma=0.1)", threads=1),
        VectorOneClass(kernel="rbf(gamma=0.1)", threads=1),
        VectorPerceptron(kernel="linear", epochs=5, threads=1),
        VectorGPRegressor(kernel="1*rbf(gamma=0.1)", max_iterations=20, threads=1),
        VectorGPClassifier(kernel="1*rbf(gamma=0.1)", max_iterations=20, threads=1),
        VectorNystroem(kernel="rbf"),
        VectorGram(kernel="rbf"),
        VectorIndex(kernel="rbf", n_neighbors=1, threads=1),
    ]
    cases = []
    for estimator in estimators:
        if hasattr(estimator_checks, "estimator_checks_generator"):
            found = estimator_checks.estimator_checks_generator(estimator)
        else:
            found = estimator_checks.check_estimator(estimator, generate_only=True)
        for one, check in found:
            name = getattr(check, "func", check).__name__
            if name not in NOT_MEANT:
                cases.append(pytest.param(one, check, id=f"{type(estimator).__name__}-{name}"))
    return cases


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator, check", _cases())
def test_checks(estimator, check):
    check(estimator)
