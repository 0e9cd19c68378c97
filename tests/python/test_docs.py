"""The documentation: every block of code in it runs, and it is built without warnings."""

from __future__ import annotations

import doctest
import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "python"
PAGES = sorted(DOCS.glob("*.md"))
FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.M | re.S)
RECIPE = re.compile(r"^(?:import|from) (ray|pyspark)\b", re.M)  # a block that is run where the package is there


def blocks(text: str) -> list[tuple[str, str, int]]:
    """The fenced blocks: their language, their lines, and the line they start at."""
    return [(match[1], match[2], text.count("\n", 0, match.start(2)) + 1) for match in FENCE.finditer(text)]


def run_session(code: str, names: dict, page: Path, line: int) -> None:
    """A session with >>>, whose output is compared."""
    test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line - 1)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failed = runner.run(test, out=said.append, clear_globs=False).failed
    names.update(test.globs)
    assert failed == 0, "".join(said)


def run_commands(code: str, request: pytest.FixtureRequest) -> None:
    """Calls of the command-line tool; what installs or builds something is not run."""
    lines = code.replace("\\\n", " ").splitlines()
    if all(line.startswith("espalier ") for line in lines):
        tool = request.getfixturevalue("tool")
        for line in lines:
            tool(*shlex.split(line, comments=True)[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_runs(page, tmp_path, monkeypatch, request):
    found = blocks(page.read_text(encoding="utf-8"))
    if any("espalier.plot" in code for _, code, _ in found):
        pytest.importorskip("matplotlib").use("Agg")
    if any("espalier.dask" in code for language, code, _ in found if language == "pycon"):
        pytest.importorskip("dask.dataframe")
        pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "__main__"}
    for language, code, line in found:
        if (recipe := RECIPE.search(code)) and importlib.util.find_spec(recipe[1]) is None:
            continue
        if language == "pycon":
            run_session(code, names, page, line)
        elif language == "python":
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), names)
        elif language == "sh":
            run_commands(code, request)
        else:
            assert language in ("text", "{eval-rst}", "{toctree}"), f"{page.name}:{line}: a block of {language!r}"


def test_readme_runs(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(r"^## Python\n(.*?)^## ", text, re.M | re.S)
    assert section is not None
    monkeypatch.chdir(tmp_path)
    found = [code for language, code, _ in blocks(section[1]) if language == "pycon"]
    assert found
    for code in found:
        run_session(code, {}, ROOT / "README.md", 1)


def test_all_pages_are_listed():
    listed = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.stem == "index" or re.search(rf"^{page.stem}$", listed, re.M), page.name


def test_all_public_names_are_described():
    import espalier
    import espalier.plot

    api = (DOCS / "api.md").read_text(encoding="utf-8")
    names = [f"espalier.{name}" for name in espalier.__all__ if not name.startswith("__")]
    names += [f"espalier.plot.{name}" for name in espalier.plot.__all__]
    if importlib.util.find_spec("dask"):
        import espalier.dask

        names += [f"espalier.dask.{name}" for name in espalier.dask.__all__]
    assert [name for name in names if not re.search(rf":: {re.escape(name)}$", api, re.M)] == []


def test_it_is_built_without_warnings(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_parser")
    options = ["-q", "-W", "--keep-going", "-b", "html", "-c", str(DOCS)]
    command = [sys.executable, "-m", "sphinx", *options, str(ROOT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "espalier.SVC" in (tmp_path / "docs" / "python" / "api.html").read_text(encoding="utf-8")
