"""The gallery: every example runs, on real data where they are there and on its own, says what it should and draws."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))
PICTURE_BYTES = 40_000

HINT = "--picture needs matplotlib: pip install 'espalier-kernels[plot]'"
BARE = """
import runpy, sys
sys.modules["matplotlib"] = None
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
draws = pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="there is no matplotlib")


def run(name: str, folder: Path, **variables: str) -> str:
    """The output of an example, which has drawn its picture."""
    picture = folder / "picture.png"
    command = [sys.executable, str(ROOT / "examples" / "python" / f"{name}.py"), "--picture", str(picture)]
    environment = {**os.environ, "MPLBACKEND": "Agg", **variables}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < PICTURE_BYTES
    return done.stdout


def accuracies(output: str) -> dict[str, float]:
    """Lines such as "ptk accuracy 0.9 in 1 s" and "accuracy by trees: 0.9"."""
    by = {name: float(value) for name, value in re.findall(r"^accuracy by (\w+): ([0-9.]+)$", output, re.M)}
    return by or {name: float(value) for name, value in re.findall(r"^(\S.*?) +accuracy ([0-9.]+)", output, re.M)}


@pytest.fixture(params=["real", "made"])
def data(request, tmp_path):
    """Where examples look for data: the real ones, or a folder that has none."""
    return request.getfixturevalue("real_data") if request.param == "real" else tmp_path / "none"


def test_without_matplotlib(tmp_path):
    """Results are printed and nothing is left behind; who asks for a picture is told at once, in one line."""
    program = ROOT / "examples" / "python" / "promoters.py"
    command = [sys.executable, "-c", BARE, str(program)]
    environment = {**os.environ, "ESPALIER_DATA": str(tmp_path / "none")}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "Motifs of five bases" in done.stdout
    command += ["--picture", "picture.png"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"{program.name}: error: {HINT}"
    assert list(tmp_path.iterdir()) == []


@draws
def test_questions(data, request, tmp_path):
    if not data.exists():
        request.getfixturevalue("tool")  # which the example draws its questions with
    tool = Path(os.environ.get("ESPALIER", ROOT / "build" / "espalier")).absolute()
    output = run("questions", tmp_path, ESPALIER_DATA=str(data), ESPALIER=str(tool))
    found = accuracies(output)
    assert found["trees"] > found["words"] > 0.7 and found["both"] > 0.8
    assert "(WRB Where)" in output


@draws
def test_clones(tmp_path):
    output = run("clones", tmp_path)
    rows = re.findall(r"^(\S+) (keep|abstract) +\|([^|]*)\|([^|]*)\|", output, re.M)
    assert len(rows) == 6
    for kernel, names, nearest, precision in rows:
        renamed, reordered, both = map(float, nearest.split())
        if names == "abstract":
            assert renamed == 1.0
            if kernel != "sst(lambda=0.4)":
                assert reordered > 0.95 and both > 0.95 and float(precision.split()[1]) > 0.9


@draws
def test_documents(data, tmp_path):
    found = accuracies(run("documents", tmp_path, ESPALIER_DATA=str(data)))
    assert found["norm(ptk(lambda=0.4))"] > 0.9
    assert len(found) == 3 and min(found.values()) > 0.75


@draws
def test_promoters(data, tmp_path):
    output = run("promoters", tmp_path, ESPALIER_DATA=str(data))
    found = accuracies(output)
    assert found["seq(n=6, lambda=0.2)"] > found["linear"] + 0.1
    assert re.search(r"^  (ta)?[ct]aat|^  tataa", output, re.M)


@draws
def test_postediting(data, tmp_path):
    output = run("postediting", tmp_path, ESPALIER_DATA=str(data))
    average = float(re.search(r"^average +([0-9.]+)$", output, re.M)[1])
    rows = re.findall(r"^(features|trees|both) +([0-9.]+) \|.*\| +([0-9]+)%$", output, re.M)
    assert len(rows) == 3
    assert min(float(error) for _, error, _ in rows) < average
    assert all(int(inside) > 80 for _, _, inside in rows)


@draws
def test_molecules(data, tmp_path):
    output = run("molecules", tmp_path, ESPALIER_DATA=str(data))
    found = re.findall(r"^(at random|expected \w+), best: ([0-9. ]+)$", output, re.M)
    best = {name: values.split() for name, values in found}
    assert best["at random"][0] == best["expected improvement"][0]  # they start with the same molecules
    assert float(best["expected improvement"][-1]) > float(best["at random"][-1])


def test_examples_are_short_and_described():
    gallery = (ROOT / "docs" / "python" / "gallery.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) == 6
    for example in EXAMPLES:
        text = example.read_text(encoding="utf-8")
        assert len(text.splitlines()) < 90, example.name
        assert f'parser.error("{HINT}")' in text and re.search(r"^(import|from) matplotlib", text, re.M) is None
        assert f"examples/python/{example.name}" in gallery
        picture = f"img/python-{example.stem}.png"
        assert picture in gallery
        if (ROOT / "docs" / "img").exists():  # they are not in the source archive
            assert (ROOT / "docs" / picture).stat().st_size < PICTURE_BYTES
