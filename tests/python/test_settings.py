"""The estimators have all settings of the library, with its defaults."""

from __future__ import annotations

import inspect

import pytest

import espalier
from espalier import _espalier
from espalier._learner import Learner, setting_value

TABLES = {name: {row[0].replace("-", "_"): row for row in table} for name, _, table in _espalier.learners()}

# What an estimator does without, and why.
WITHOUT = {
    "GPRegressor": {"likelihood"},  # it is what tells the two apart
    "GPClassifier": {  # all but the first are for numbers
        "likelihood",
        "noise",
        "mean",
        "standardise",
        "inducing",
        "solver",
        "solver_rank",
        "probes",
        "residual",
        "solver_iterations",
        "keep_partial",
    },
}


def test_every_learner_has_an_estimator():
    assert {kind._learner for kind in Learner._estimators} == set(TABLES)
    assert all(kind.__name__ in espalier.__all__ for kind in Learner._estimators)


@pytest.mark.parametrize("kind", Learner._estimators, ids=lambda kind: kind.__name__)
def test_settings_are_those_of_the_table(kind):
    wanted = TABLES[kind._learner].keys() - WITHOUT.get(kind.__name__, set())
    assert set(kind._settings) - {"seed"} == wanted
    parameters = inspect.signature(kind.__init__).parameters
    for name in kind._settings:
        default = parameters[name].default
        if name == "seed":
            assert default == 1
            continue
        _, text, _, _, setting = TABLES[kind._learner][name]
        assert default == setting_value(setting, text), name
        assert type(default) is type(setting_value(setting, text)), name
