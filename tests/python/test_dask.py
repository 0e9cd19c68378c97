"""Gram matrices and predictions over dask: the numbers of one process, whatever the scheduler."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import types

import numpy as np
import pytest
from conftest import random_tree

from espalier import SVC, SVR, Kernel, OneClassSVM
from espalier._data import to_dataset

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
module = pytest.importorskip("espalier.dask")
gram, predict = module.gram, module.predict

DRAW = random.Random(3)
TREES = [random_tree(DRAW) for _ in range(57)]
OTHERS = TREES[:7] + [random_tree(DRAW) for _ in range(6)]
THREE = ["xab"[i % 3] for i in range(57)]
TWO = [i % 2 for i in range(57)]


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads"):
        yield


def close(one, other) -> bool:
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-12, atol=0)


# ------------------------------------------------------------- Gram matrices


@pytest.mark.parametrize("expression", ["norm(sst)", "ptk", "norm(sst(lambda=0.4))^2 + 0.5*ptk"])
@pytest.mark.parametrize("chunks", [20, 1000, (20, 9), ((50, 7), -1)])
def test_gram_has_the_values_of_the_kernel(expression, chunks):
    kernel = Kernel(expression)
    for Y in (None, OTHERS):
        whole = gram(kernel, TREES, Y, chunks=chunks)
        assert whole.shape == (57, 57 if Y is None else 13) and whole.dtype == float
        assert close(whole.compute(), kernel(TREES, Y))


def test_gram_is_symmetric_to_the_last_bit():
    whole = gram("norm(ptk)", TREES, chunks=10).compute()
    assert (whole == whole.T).all() and (np.diag(whole) == 1).all()


def test_nothing_is_computed_before_it_is_asked_for(monkeypatch):
    calls = []
    compute = Kernel._gram

    def count(*arguments):
        calls.append(1)
        return compute(*arguments)

    monkeypatch.setattr(Kernel, "_gram", count)
    whole = gram("sst", TREES, chunks=20)
    assert calls == []
    whole[:20, :20].compute()
    assert len(calls) == 1
    whole.compute()
    assert len(calls) == 1 + 6


def test_gram_of_collections():
    kernel = Kernel("norm(sst)")
    bag = db.from_sequence(TREES, npartitions=4)
    whole = gram(kernel, bag)
    assert close(whole.compute(), kernel(TREES))
    assert whole.compute_chunk_sizes().shape == (57, 57)
    few = gram(kernel, bag.filter(lambda tree: tree.startswith("(S")), OTHERS)  # a partition may be left without any
    assert close(few.compute(), kernel([tree for tree in TREES if tree.startswith("(S")], OTHERS))
    none = gram(kernel, db.from_sequence(["", *TREES], partition_size=1).filter(bool))
    assert none.compute().shape == (57, 57)
    vectors = np.random.default_rng(1).random((40, 5))
    whole = gram("rbf", da.from_array(vectors, chunks=(15, 2)))
    assert whole.chunks[0] == (15, 15, 10)
    assert close(whole.compute(), Kernel("rbf")(vectors))


def test_gram_of_tables_and_datasets():
    rows = {"tree": TREES, "words": ["a b c", "b c", "c"] * 19, "y": ["u v"] * 57}
    kernel = Kernel("norm(sst(tree)) + linear(words)*linear(y)")
    assert close(gram(kernel, rows, chunks=20).compute(), kernel(rows))
    data = to_dataset(TREES, [f'"{label}"' for label in THREE])
    assert close(gram("norm(sst)", data, chunks=20).compute(), Kernel("norm(sst)")(TREES))


def test_a_piece_may_have_empty_trees_only():
    trees = [*[""] * 12, "(A (B b))", *[""] * 12]
    assert close(gram("sst", trees, chunks=5).compute(), Kernel("sst")(trees))


def test_bad_arguments_are_told():
    for chunks in (0, "auto", (1, 2, 3), 2.5, None, ((), 3)):
        with pytest.raises(ValueError, match="chunks is .*; allowed is a whole number > 0"):
            gram("sst", TREES, chunks=chunks)
    with pytest.raises(ValueError, match=r"Y\[1\] is None"):
        gram("sst", TREES, ["(A a)", None])
    with pytest.raises(TypeError, match="X is a Delayed.*; allowed are examples, or a dask bag"):
        gram("sst", dask.delayed(TREES))


# --------------------------------------------------------------- predictions

MODELS = {
    "three classes": SVC(probability=True).fit(TREES, THREE),
    "two classes": SVC(probability=True, progress=lambda stage, fraction: None).fit(TREES, TWO),
    "numbers": SVR().fit(TREES, TWO),
    "one class": OneClassSVM().fit(TREES),
}
CASES = [
    (kind, method)
    for kind, model in MODELS.items()
    for method in ("predict", "predict_proba", "decision_function")
    if hasattr(model, method)
]


@pytest.mark.parametrize("kind, method", CASES)
def test_bags(kind, method):
    expected = getattr(MODELS[kind], method)(TREES)
    bag = db.from_sequence(TREES, npartitions=4)
    values = predict(MODELS[kind], bag, method).compute()
    assert isinstance(values, list) and (np.array(values) == expected).all()
    assert predict(MODELS[kind], bag.filter(lambda tree: False), method).compute() == []


@pytest.mark.parametrize("kind, method", CASES)
def test_arrays(kind, method):
    expected = getattr(MODELS[kind], method)(TREES)
    for texts in (np.array(TREES), np.array(TREES, dtype=object)):
        lazy = predict(MODELS[kind], da.from_array(texts, chunks=10), method)
        assert lazy.shape == expected.shape and lazy.dtype == expected.dtype
        values = lazy.compute()
        assert values.dtype == expected.dtype and (values == expected).all()


def test_arrays_of_vectors():
    vectors = np.random.default_rng(1).random((40, 5))
    array = da.from_array(vectors, chunks=(15, 2))
    classes = (vectors[:, 0] * 3).astype(int)
    model = SVC(kernel="rbf", probability=True).fit(vectors, classes)
    for method in ("predict", "predict_proba", "decision_function"):
        expected = getattr(model, method)(vectors)
        lazy = predict(model, array, method)
        assert lazy.shape == expected.shape
        assert (lazy.compute() == expected).all()
    some = array[array[:, 0] > 0.5]  # of sizes that are not known
    assert predict(model, some).compute().tolist() == model.predict(vectors[vectors[:, 0] > 0.5]).tolist()


@pytest.mark.parametrize("kind, method", CASES)
def test_columns(kind, method):
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    expected = getattr(MODELS[kind], method)(TREES)
    table = pandas.DataFrame({"parse": TREES, "id": range(57)}, index=range(100, 157))
    lazy = predict(MODELS[kind], dd.from_pandas(table, npartitions=3)["parse"], method)
    values = lazy.compute()
    assert (values.index == table.index).all() and (values.to_numpy() == expected).all()
    if expected.ndim == 1:
        assert lazy.dtype == values.dtype and lazy.name == values.name == method
    else:
        assert lazy.columns.tolist() == values.columns.tolist() == MODELS[kind].classes_.tolist()


def test_dataframes():
    pandas, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame({"parse": TREES, "words": ["a b", "b c", "c"] * 19})
    model = SVC(kernel="norm(sst(parse)) + linear(words)").fit(table, THREE)
    values = predict(model, dd.from_pandas(table, npartitions=3)).compute()
    assert values.tolist() == model.predict(table).tolist()


def test_a_model_is_loaded_once(monkeypatch):
    loads = []

    def count(data):
        loads.append(1)
        return pickle.loads(data)

    monkeypatch.setattr(module, "pickle", types.SimpleNamespace(loads=count))
    module._loaded.clear()
    predict(MODELS["numbers"], db.from_sequence(TREES, npartitions=20)).compute()
    predict(MODELS["numbers"], da.from_array(np.array(TREES), chunks=10)).compute()
    assert loads == [1]
    for C in range(1, 12):
        predict(SVR(C=C).fit(TREES, TWO), db.from_sequence(TREES[:2])).compute()
    assert len(module._loaded) == module._KEPT


def test_the_model_of_a_file(tmp_path):
    MODELS["three classes"].save(tmp_path / "model")
    bag = db.from_sequence(TREES, npartitions=2)
    expected = MODELS["three classes"].predict(TREES).tolist()
    assert predict(tmp_path / "model", bag).compute() == predict(str(tmp_path / "model"), bag).compute() == expected


def test_a_pipeline():
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC as OtherSVC

    from espalier import GramTransformer

    kernel = Kernel("norm(sst)", progress=lambda stage, fraction: None)
    model = make_pipeline(GramTransformer(kernel=kernel), OtherSVC(kernel="precomputed")).fit(TREES, THREE)
    assert predict(model, db.from_sequence(TREES, npartitions=2)).compute() == model.predict(TREES).tolist()
    assert kernel.progress is not None and kernel.threads == 0


def test_workers_use_one_thread_unless_told_otherwise():
    assert module._for_workers(SVC()).threads == 1
    assert module._for_workers(SVC(threads=3)).threads == 3
    assert module._for_workers(SVC(kernel=Kernel("sst"))).kernel.threads == 1


def test_bad_data_are_told():
    bag = db.from_sequence(TREES)
    with pytest.raises(ValueError, match="method is 'score'; allowed are 'predict', 'predict_proba'"):
        predict(MODELS["numbers"], bag, "score")
    with pytest.raises(AttributeError, match="predict_proba"):
        predict(MODELS["numbers"], bag, "predict_proba")
    with pytest.raises(ValueError, match="not fitted"):
        predict(SVC(), bag)
    with pytest.raises(TypeError, match="data is a list; allowed are a dask bag, array, dataframe"):
        predict(MODELS["numbers"], TREES)
    with pytest.raises(ValueError, match="the array has 3 dimensions"):
        predict(MODELS["numbers"], da.zeros((2, 2, 2)))


def test_without_dask_the_import_says_what_to_install():
    code = "import sys; sys.modules['dask'] = None; import espalier; import espalier.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: espalier.dask needs dask" in done.stderr
    assert "pip install 'espalier-kernels[dask]'" in done.stderr


# ----------------------------------------------------------- other processes


def test_processes():
    """One call for all, since it starts the processes."""
    bag = db.from_sequence(TREES, npartitions=3)
    model = MODELS["three classes"]
    lazy = (gram("norm(sst)", TREES, chunks=20), predict(model, bag), predict(model, bag, "predict_proba"))
    whole, labels, chances = dask.compute(*lazy, scheduler="processes", num_workers=1)
    assert close(whole, Kernel("norm(sst)")(TREES))
    assert labels == model.predict(TREES).tolist()
    assert (np.array(chances) == model.predict_proba(TREES)).all()


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _models_here() -> int:
    import espalier.dask

    return len(espalier.dask._loaded)


def test_a_cluster(client):
    model = MODELS["three classes"]
    bag = db.from_sequence(TREES, npartitions=12)
    lazy = (gram("norm(sst)", TREES, chunks=20), gram("norm(sst)", bag), predict(model, bag))
    with dask.config.set(scheduler=client):
        whole, other, labels = dask.compute(*lazy)
    assert close(whole, Kernel("norm(sst)")(TREES)) and close(other, whole)
    assert labels == model.predict(TREES).tolist()
    assert set(client.run(_models_here).values()) <= {0, 1}


def test_a_search_over_the_cluster(client):
    joblib = pytest.importorskip("joblib")
    from sklearn.model_selection import GridSearchCV

    data = to_dataset(TREES, list(map(str, TWO)))
    grid = {"C": [1, 10], "kernel__lambda": [0.2, 0.4]}
    model = SVC(kernel=Kernel("norm(sst)"), threads=1)
    expected = GridSearchCV(model, grid, cv=3).fit(TREES, TWO)
    with joblib.parallel_backend("dask", client=client):
        search = GridSearchCV(model, grid, cv=3).fit(data, TWO)
    assert (search.cv_results_["mean_test_score"] == expected.cv_results_["mean_test_score"]).all()
    assert (search.predict(TREES) == expected.predict(TREES)).all()
