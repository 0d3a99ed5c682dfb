#!/usr/bin/env python3
"""pictures.py: docs/pictures/railctl.py draws every device and mark, with boxes that only nest, and nothing becomes markup.

exit status: 0; 1 with what is wrong, or a planted overlap is not found.
"""
import json
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(report):
    done = subprocess.run([ROOT / "docs/pictures/railctl.py"], input=json.dumps(report), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(text):
    """Well formed; rectangles are within the picture and overlap only by nesting; texts begin within it."""
    root = tree.fromstring(text)
    _, _, width, height = map(int, root.get("viewBox").split())
    boxes = [tuple(float(e.get(k)) for k in ("x", "y", "width", "height")) for e in root.iter(SVG + "rect") if e.get("x")]
    boxes = [(x, y, x + w, y + h) for x, y, w, h in boxes]
    inside = lambda a, b: a[0] >= b[0] and a[1] >= b[1] and a[2] <= b[2] and a[3] <= b[3]
    apart = lambda a, b: a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
    for i, a in enumerate(boxes):
        assert inside(a, (0, 0, width, height)), (a, "is outside")
        for b in boxes[:i]:
            assert a != b and (inside(a, b) or inside(b, a) or apart(a, b)), (a, "overlaps", b)
    for e in root.iter(SVG + "text"):
        assert 0 < float(e.get("x")) < width and 0 < float(e.get("y")) < height, e.text
    return [e.text for e in root.iter(SVG + "text")]


def main():
    node = json.loads((ROOT / "docs/pictures/topology.json").read_text(encoding="utf-8"))
    texts = check(drawn(node))
    for one in node["accelerators"] + node["nics"]:
        assert any(one["address"] in text for text in texts), one["address"]
    node["node"] = node["nics"][0]["rail"] = '<script>&"'
    node["nics"][0]["vfs"], node["nics"][0]["vfsInUse"] = 40, ["a", "b"]
    node["nics"][1]["bridges"] = []
    text = drawn(node)
    assert '<script>' not in text and any('rail <script>&"' in one for one in check(text))
    assert text.count('fill="#c2410c"') == 2 + 1, "two VFs in use, and the legend"
    check(drawn({"node": "x", "accelerators": [], "nics": []}))
    nodes = [f"gpu-{n:03}" for n in range(60)]
    rows = ["".join("-" if a == b else "X" if 17 in (a, b) else "." for b in range(60)) for a in range(60)]
    marks = {"-": "itself", ".": "reachable", "X": "silent"}
    text = drawn({"nodes": nodes, "marks": marks, "rails": [{"rail": "a&b", "rows": rows}] * 3,
                  "faults": [{"text": "rail0: gpu-017 reaches no other node"}]})
    assert "rail0: gpu-017 reaches no other node" in check(text) and "a&b" in check(text)
    assert text.count("<rect") < 3 * (60 + 59 + 3) + 12, "a rectangle for each run, not for each mark"
    for wrong in ("", "[]", "{}", '{"nics": [], "accelerators": 1}'):
        done = subprocess.run([ROOT / "docs/pictures/railctl.py"], input=wrong, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "is no report" in done.stderr, wrong
    planted = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><rect x="0" y="0" width="5" height="5"/>' \
              '<rect x="4" y="0" width="5" height="5"/></svg>'
    try:
        check(planted)
    except AssertionError:
        print("pictures of a node and of matrices have what they should")
        return 0
    print("pictures.py: the planted overlap was not found", file=sys.stderr)
    return 1


sys.exit(main())
