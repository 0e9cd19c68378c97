#!/usr/bin/env python3
"""Draws docs/img/report-*.png: the report of the questions in ../shared/data (or ESPALIER_DATA), seen in Chromium."""
import collections
import os
import struct
import subprocess
import sys
import tempfile
import zlib

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.join(here, "..", "..")
sys.path.insert(0, os.path.join(root, "tests", "report"))
from browser import Browser


def pixels(path):
    """Rows of (red, green, blue) of an 8-bit PNG without interlacing."""
    data = open(path, "rb").read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, _, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    step = {2: 3, 6: 4}[colour]
    raw, before, rows = zlib.decompress(packed), bytearray(width * step), []
    for y in range(height):
        start = y * (width * step + 1)
        line, rule = bytearray(raw[start + 1:start + 1 + width * step]), raw[start]
        for i in range(len(line)):
            a, b, c = line[i - step] if i >= step else 0, before[i], before[i - step] if i >= step else 0
            if rule == 4:
                p = a + b - c
                nearest = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[i] = (line[i] + (0, a, b, (a + b) // 2, nearest if rule == 4 else 0)[rule]) & 255
        rows.append([tuple(line[i:i + 3]) for i in range(0, len(line), step)])
        before = line
    return rows


def write_small(rows, path, colours=64):
    """A PNG with a palette: the most frequent colours, and for the others the nearest of these."""
    palette = [c for c, _ in collections.Counter(p for row in rows for p in row).most_common(colours)]
    place = {c: i for i, c in enumerate(palette)}
    for row in rows:
        for p in row:
            if p not in place:
                place[p] = min(range(len(palette)), key=lambda k: sum((x - y) ** 2 for x, y in zip(palette[k], p)))
    raw = b"".join(b"\0" + bytes(place[p] for p in row) for row in rows)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 3, 0, 0, 0))
                   + chunk(b"PLTE", bytes(v for c in palette for v in c)) + chunk(b"IDAT", zlib.compress(raw, 9))
                   + chunk(b"IEND", b""))


def main():
    espalier = os.environ.get("ESPALIER", os.path.join(root, "build", "espalier"))
    data = os.path.join(os.environ.get("ESPALIER_DATA", os.path.join(root, "..", "shared", "data")), "questions")
    with tempfile.TemporaryDirectory() as work:
        model, page = os.path.join(work, "questions.model"), os.path.join(work, "questions.html")
        subprocess.run([espalier, "train", "-q", "--target", "coarse", "-k", "norm(sst(tree, lambda=0.4))", "-C", "10",
                        "-o", model, os.path.join(data, "train.jsonl.gz")], check=True)
        subprocess.run([espalier, "report", "--target", "coarse", model, os.path.join(data, "test.jsonl.gz"), "-o", page], check=True)
        browser = Browser()
        for name, width, height, dark, section in (("light", 1080, 720, False, "quality"), ("dark", 1080, 720, True, "examples"),
                                                   ("phone", 380, 720, False, "features")):
            browser.open(page, width=width, height=height, dark=dark)
            if name == "phone":
                browser.run("""(() => { const chosen = document.getElementById("class-filter"); chosen.value = "LOC";
                               chosen.dispatchEvent(new Event("change")); })()""")
            browser.run(f"document.getElementById({section!r}).scrollIntoView()")
            browser.run("new Promise((done) => setTimeout(done, 300))")
            shot = os.path.join(work, "shot.png")
            browser.screenshot(shot)
            write_small(pixels(shot), os.path.join(here, f"report-{name}.png"))
        browser.close()


main()
