"""examples/smiles.py: molecules as tokens and trees."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "smiles.py"
views = runpy.run_path(str(PROGRAM))["views"]


@pytest.mark.parametrize(
    ("smiles", "tokens", "tree"),
    [
        ("C", "C", "(molecule C)"),
        ("CCO", "C C O", "(molecule (C (C O)))"),
        ("OC(=O)C#N", "O C ( = O ) C # N", "(molecule (O (C (C #N) =O)))"),
        ("ClCBr", "Cl C Br", "(molecule (Cl (C Br)))"),
        ("c1cc[nH]c1", "c 1 c c [nH] c 1", "(molecule (c (c (c (nH (c @c)))) @c))"),
        ("C=1CC1", "C = 1 C C 1", "(molecule (C (C (C @=C)) @=C))"),
        ("C%10CC%10", "C %10 C C %10", "(molecule (C (C (C @C)) @C))"),
        ("[Na+].[O-]C", "[Na+] . [O-] C", "(molecule (O- C) Na+)"),
        ("F[C@@H](/C=C/I)[13CH3]", "F [C@@H] ( / C = C / I ) [13CH3]", "(molecule (F (C (C (=C I)) C)))"),
    ],
)
def test_views(smiles, tokens, tree):
    assert views(smiles) == {"tokens": tokens, "tree": tree}


def test_the_order_of_branches_does_not_count():
    assert views("C(O)(N)F")["tree"] == views("C(F)(O)N")["tree"]


@pytest.mark.parametrize("smiles", ["", "C C", "Qu", "C(", "C)", "1C", "C1CC"])
def test_what_is_not_smiles(smiles):
    with pytest.raises(ValueError, match="'"):
        views(smiles)


def test_files(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("name,smiles,y\nmethane,C,1.5\nunknown,CC,\nwater,O,2\n")
    command = [sys.executable, str(PROGRAM), str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [json.loads(line)["y"] for line in done.stdout.splitlines()] == [1.5, 2]
    data.write_text("smiles,y\nC,1\nC1,2\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"{data}:3: 'C1' has a ring or a branch that does not end\n")
