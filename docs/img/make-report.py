#!/usr/bin/env python3
"""Draws docs/img/report-*.png: the report of the questions in ../shared/data (or ESPALIER_DATA), seen in Chromium.
Needs Pillow, which comes with matplotlib."""

import os
import subprocess
import sys
import tempfile

from PIL import Image

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "..", "..")
sys.path.insert(0, os.path.join(root, "tests", "report"))
from browser import Browser  # noqa: E402


def main():
    espalier = os.environ.get("ESPALIER", os.path.join(root, "build", "espalier"))
    data = os.path.join(os.environ.get("ESPALIER_DATA", os.path.join(root, "..", "shared", "data")), "questions")
    with tempfile.TemporaryDirectory() as work:
        model, page = os.path.join(work, "questions.model"), os.path.join(work, "questions.html")
        train = [espalier, "train", "-q", "--target", "coarse", "-k", "norm(sst(tree, lambda=0.4))", "-C", "10"]
        subprocess.run([*train, "-o", model, os.path.join(data, "train.jsonl.gz")], check=True)
        report = [espalier, "report", "--target", "coarse", model, os.path.join(data, "test.jsonl.gz")]
        subprocess.run([*report, "-o", page], check=True)
        browser = Browser()
        for name, width, height, dark, section in (
            ("light", 1080, 720, False, "quality"),
            ("dark", 1080, 720, True, "examples"),
            ("phone", 380, 720, False, "features"),
        ):
            browser.open(page, width=width, height=height, dark=dark)
            if name == "phone":
                browser.run("""(() => { const chosen = document.getElementById("class-filter"); chosen.value = "LOC";
                               chosen.dispatchEvent(new Event("change")); })()""")
            browser.run(f"document.getElementById({section!r}).scrollIntoView()")
            browser.run("new Promise((done) => setTimeout(done, 300))")
            shot = os.path.join(work, "shot.png")
            browser.screenshot(shot)
            Image.open(shot).convert("RGB").quantize(64).save(os.path.join(here, f"report-{name}.png"), optimize=True)
        browser.close()


main()
