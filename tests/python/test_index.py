"""Search in Python: against sorted Gram matrices, against scikit-learn, and as files of the command line."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline

from espalier import Index, Kernel

KERNELS = ["norm(sst(lambda=0.4))", "norm(st(lambda=0.7, bow=0.2))", "norm(ptk)"]


@pytest.fixture(scope="module")
def trees(questions):
    return questions[0][:150] + questions[0][:10]


def ranking(row):
    """All examples, the best first, values up to rounding errors; of equal ones the first."""
    return np.lexsort((np.arange(len(row)), -np.array([float(f"{value:.11e}") for value in row])))


@pytest.mark.parametrize("kernel", [*KERNELS, "sst(lambda=0.4)", "0.5*norm(sst) + 0.5*norm(ptk)"])
def test_search_is_sorting(kernel, trees):
    index = Index(kernel).fit(trees[20:])
    gram = Kernel(kernel)(trees[:30], trees[20:])
    for bounds in (True, False):
        hits = index.search(trees[:30], 7, bounds=bounds)
        assert hits.start.tolist() == list(range(0, 211, 7))
        for i, row in enumerate(gram):
            part = slice(hits.start[i], hits.start[i + 1])
            assert hits.example[part].tolist() == ranking(row)[:7].tolist()
            np.testing.assert_allclose(hits.similarity[part], row[hits.example[part]], rtol=1e-11, atol=1e-11)
        assert hits.computed + hits.skipped == gram.size
    hits = index.search(trees[:30], None, above=0.4)
    assert len(hits.example) == (gram >= 0.4).sum() > 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_neighbours_as_those_of_scikit_learn(kernel, trees):
    index = Index(kernel, n_neighbors=4).fit(trees)
    distance = Kernel(kernel).distance(trees)
    other = NearestNeighbors(n_neighbors=4, metric="precomputed").fit(distance)
    mine, theirs = index.kneighbors(trees[:20]), other.kneighbors(distance[:20])
    np.testing.assert_allclose(mine[0], theirs[0], atol=1e-6)
    np.testing.assert_allclose(index.kneighbors()[0], other.kneighbors()[0], atol=1e-6)
    assert (index.kneighbors()[1] != np.arange(len(trees))[:, None]).all()
    assert (index.kneighbors(trees, return_distance=False) == index.kneighbors(trees)[1]).all()
    for X, rows in ((trees[:20], distance[:20]), (None, None)):
        mine = index.radius_neighbors(X, 1.05)
        theirs = other.radius_neighbors(rows, 1.05)
        assert [sorted(row) for row in mine[1]] == [sorted(row) for row in theirs[1]]
        for a, b in zip(mine[0], theirs[0]):
            np.testing.assert_allclose(a, np.sort(b), atol=1e-6)
    graph = index.kneighbors_graph(trees[:20], mode="distance")
    assert graph.shape == (20, len(trees)) and graph.nnz == 80
    near = index.radius_neighbors_graph(None, 1.05, mode="similarity")
    assert near.nnz == sum(len(row) for row in index.radius_neighbors(None, 1.05)[1])
    assert near.data.max() <= 1 and near.data.min() >= 1 - 1.05**2 / 2 - 1e-9


def test_distances_are_those_of_the_feature_space(trees):
    K = Kernel("sst(lambda=0.4)")
    gram = K(trees[:12])
    expected = [[max(0, gram[i, i] + gram[j, j] - 2 * gram[i, j]) ** 0.5 for j in range(12)] for i in range(12)]
    np.testing.assert_allclose(K.distance(trees[:12]), expected, atol=1e-6)
    np.testing.assert_allclose(K.distance(trees[:5], trees[:12]), np.array(expected)[:5], atol=1e-6)
    assert (np.diag(K.distance(trees[:12])) == 0).all()


def test_empty_trees_have_the_distances_of_the_definition(trees):
    """K(x, x) is 0 of them, even with norm(...)."""
    X = ["", "(S a)", *trees[:12], "", "(Z z)"]
    K = Kernel("norm(sst(lambda=0.4))")
    assert (K.diag(X) == 0).sum() == 2
    index = Index("norm(sst(lambda=0.4))", n_neighbors=4).fit(X)
    added = Index("norm(sst(lambda=0.4))").fit(X[:5]).add(X[5:])
    assert added.kneighbors(X, 3)[1].tolist() == index.kneighbors(X, 3)[1].tolist()
    distance = K.distance(X)
    for other in (index, pickle.loads(pickle.dumps(index)), pickle.loads(pickle.dumps(added))):
        mine, example = other.kneighbors(X, len(X))
        np.testing.assert_allclose(mine, np.sort(distance), atol=1e-6)
        np.testing.assert_allclose(mine, np.take_along_axis(distance, example, 1), atol=1e-6)
        for radius in (0, 0.9, 1, 1.2, 1.5):
            near, examples = other.radius_neighbors(X, radius)
            for i in range(len(X)):
                assert sorted(examples[i]) == np.flatnonzero(distance[i] <= radius + 1e-7).tolist()
                np.testing.assert_allclose(near[i], distance[i, examples[i]], atol=1e-6)
    others = distance + 9 * np.eye(len(X))
    for count in (1, 4):
        np.testing.assert_allclose(index.kneighbors(None, count)[0], np.sort(others)[:, :count], atol=1e-6)
    assert all(i not in row for i, row in enumerate(index.radius_neighbors(None, 1.1)[1]))
    graph = index.radius_neighbors_graph(X, 1.1, mode="similarity").tocoo()
    np.testing.assert_allclose(graph.data, K(X)[graph.row, graph.col], atol=1e-9)


def test_graphs_of_similarities_take_any_kernel(trees):
    index = Index("sst(lambda=0.4)", mode="similarity", n_neighbors=3)
    graph = index.fit_transform(trees).tocoo()
    gram = Kernel("sst(lambda=0.4)")(trees)
    assert graph.nnz == 4 * len(trees)
    np.testing.assert_allclose(graph.data, gram[graph.row, graph.col], rtol=1e-9)
    np.testing.assert_allclose(np.sort(graph.data.reshape(-1, 4)), np.sort(gram)[:, -4:], rtol=1e-9)
    assert index.kneighbors_graph(mode="similarity").diagonal().sum() == 0
    for mode in ("distance", "connectivity"):
        with pytest.raises(ValueError, match="distances need a kernel with"):
            index.kneighbors_graph(trees, mode=mode)


def test_a_graph_for_scikit_learn(questions):
    X, y = questions
    index = Index("norm(sst(lambda=0.4))", n_neighbors=5)
    graph = index.fit_transform(X)
    assert graph.shape == (len(X), len(X)) and (np.diff(graph.indptr) == 6).all()
    model = make_pipeline(clone(index), KNeighborsClassifier(5, metric="precomputed"))
    assert model.fit(X, y).score(X, y) > 0.5
    plain = KNeighborsClassifier(5, metric="precomputed").fit(Kernel("norm(sst(lambda=0.4))").distance(X), y)
    expected = plain.predict(Kernel("norm(sst(lambda=0.4))").distance(X))
    assert (model.predict(X) == expected).mean() > 0.95  # ties aside
    labels = DBSCAN(eps=1.05, min_samples=3, metric="precomputed").fit_predict(
        index.radius_neighbors_graph(X, 1.05, mode="distance")
    )
    assert len(labels) == len(X)
    assert list(index.get_feature_names_out()[:2]) == ["index0", "index1"]


def test_pairs_and_clusters(trees):
    index = Index("norm(sst(lambda=0.4))").fit(trees)
    gram = Kernel("norm(sst(lambda=0.4))")(trees)
    expected = {(i, j) for i in range(len(trees)) for j in range(i + 1, len(trees)) if gram[i, j] >= 0.5}
    pairs = index.pairs(0.5)
    assert {(i, j) for i, j, _ in pairs} == expected and expected
    assert [value for _, _, value in pairs] == sorted((value for _, _, value in pairs), reverse=True)
    assert pairs == index.pairs(0.5, bounds=False)
    clusters = index.clusters(0.5)
    assert {i for cluster in clusters for i, _ in cluster} == {i for pair in expected for i in pair}
    for cluster in clusters:
        assert cluster[0][1] == 1 and len(cluster) > 1


def test_files_of_the_command_line(tool, trees, tmp_path):
    table = {"id": [f"t{i}" for i in range(len(trees))], "tree": trees}
    (tmp_path / "data.jsonl").write_text(
        "".join(f'{{"id": "t{i}", "tree": "{tree}"}}\n' for i, tree in enumerate(trees)), encoding="utf-8"
    )
    index = Index("norm(sst(lambda=0.4))", id="id").fit(table)
    index.save(tmp_path / "python.index")
    tool("index", "-k", "norm(sst(lambda=0.4))", "--id", "id", "-o", tmp_path / "tool.index", tmp_path / "data.jsonl")
    assert (tmp_path / "python.index").read_bytes() == (tmp_path / "tool.index").read_bytes()
    loaded = Index.load(tmp_path / "tool.index", n_neighbors=3)
    assert loaded.ids_ == table["id"] and loaded.id == "id" and loaded.summary["examples"] == str(len(trees))
    lines = tool("search", tmp_path / "tool.index", tmp_path / "data.jsonl", "--top", 3).splitlines()
    hits = loaded.search(trees, 3)
    assert [line.split("\t")[2] for line in lines] == [f"t{i}" for i in hits.example]
    assert [float(line.split("\t")[3]) for line in lines] == hits.similarity.tolist()
    with pytest.raises(ValueError, match="the examples are not at hand"):
        loaded.kneighbors()
    again = pickle.loads(pickle.dumps(index))
    assert again.search(trees[:5], 3).example.tolist() == index.search(trees[:5], 3).example.tolist()
    part = Index("norm(sst(lambda=0.4))", id="id").fit({name: column[:50] for name, column in table.items()})
    part.add({name: column[50:] for name, column in table.items()}).save(tmp_path / "added.index")
    assert (tmp_path / "added.index").read_bytes() == (tmp_path / "tool.index").read_bytes()


def test_measures(tmp_path):
    table = {"id": ["a", "b", "c", "d"], "tree": ["(S (A a) (B b))", "(S (A a) (B c))", "(S (A x) (B b))", "(Z z)"]}
    (tmp_path / "qrels").write_text("a 0 c 1\nb 0 a 1\nb 0 gone 1\n")
    index = Index("norm(sst(lambda=0.4))", id="id").fit(table)
    found = index.measure(table, tmp_path / "qrels")
    # a finds b and c, equally similar, in this order; b finds a first.
    assert found["queries"] == 2 and found["unjudged"] == 2 and found["unknown_examples"] == 1
    assert found["mrr"] == pytest.approx((1 / 2 + 1) / 2)
    assert found["map"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    with pytest.raises(ValueError, match="no names"):
        Index("norm(sst)").fit(table["tree"]).measure(table["tree"], tmp_path / "qrels")


def test_what_is_refused(trees, tmp_path):
    with pytest.raises(ValueError, match="distances need a kernel with"):
        Index("sst").fit(trees).kneighbors(trees[:2])
    with pytest.raises(ValueError, match=r"distances need a kernel with"):
        Index("norm(sst) + norm(ptk)").fit(trees).kneighbors(trees[:2])
    index = Index("norm(sst)").fit(trees[:5])
    with pytest.raises(ValueError, match="there are 5 examples"):
        index.kneighbors(trees[:2], 6)
    wrongs: list[Any] = [0, -1, 1.5, "3"]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="allowed is a whole number"):
            index.kneighbors(trees[:2], wrong)
        with pytest.raises(ValueError, match="allowed is a whole number"):
            index.search(trees[:2], wrong)
    with pytest.raises(ValueError, match="radius is -1"):
        index.radius_neighbors(trees[:2], -1)
    with pytest.raises(ValueError, match="mode is 'all'"):
        index.kneighbors_graph(trees[:2], 2, mode="all")
    with pytest.raises(ValueError, match="have one name"):
        Index("norm(sst)", id="id").fit({"id": ["a", "a"], "tree": trees[:2]})
    with pytest.raises(ValueError, match="not an index file"):
        (tmp_path / "file").write_text("something else")
        Index.load(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        Index.load(tmp_path / "nothing")
    index.save(tmp_path / "index")
    for parameters in ({"kernel": "ptk"}, {"id": "x"}):
        with pytest.raises(ValueError, match=f"{next(iter(parameters))} cannot be given: the file says"):
            Index.load(tmp_path / "index", **parameters)
    with pytest.raises(ValueError, match="n_samples_fit_|not fitted"):
        Index().search(trees)
