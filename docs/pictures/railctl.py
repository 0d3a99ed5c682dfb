#!/usr/bin/env python3
"""railctl.py - draws what railctl says as JSON, as SVG on standard output.

usage: railctl topology -o json | docs/pictures/railctl.py >node.svg
       railctl reachability -o json FILE... | docs/pictures/railctl.py >matrix.svg
exit status: 0; 1 the input is neither of the two
"""
import json
import sys

from draw import Drawing, QUIET

PADDING, TITLE, LINE = 10, 20, 14
DEVICE_WIDTH, ROW_WIDTH = 190, 640
VF_SIZE, VF_STEP, VFS_IN_A_ROW = 8, 10, 16
FREE, USED = "#ffffff", "#c2410c"
COLOURS = {"reachable": "#2da44e", "unknown": "#d0d7de", "lossy": "#eac54f", "paths": "#fb8f44", "mtu": "#a475f9",
           "noRdma": "#bf8700", "oneWay": "#ff8182", "silent": "#cf222e", "itself": "#6e7781"}


class Box:
    """One with children, or a device with lines of text; x and y are relative to the parent."""

    def __init__(self, fill, lines):
        self.fill, self.lines = fill, lines
        self.children, self.vfs, self.x, self.y = {}, [], 0, 0
        self.width, self.height = DEVICE_WIDTH, 0

    def child(self, key, fill, title):
        return self.children.setdefault(key, Box(fill, [title]))

    def measure(self, row_width):
        """Places the children in rows from left to right."""
        if not self.children:
            rows = -(-len(self.vfs) // VFS_IN_A_ROW)
            self.height = PADDING + len(self.lines) * LINE + rows * VF_STEP + PADDING
            return
        x, y, high, wide = PADDING, TITLE + PADDING, 0, 0
        for child in self.children.values():
            child.measure(ROW_WIDTH)
            if x > PADDING and x + child.width > row_width:
                x, y, high = PADDING, y + high + PADDING, 0
            child.x, child.y = x, y
            x += child.width + PADDING
            wide, high = max(wide, x), max(high, child.height)
        self.width, self.height = max(wide, DEVICE_WIDTH + 2 * PADDING), y + high + PADDING

    def draw(self, drawing, x, y):
        x, y = x + self.x, y + self.y
        drawing.box(x, y, self.width, self.height, fill=self.fill)
        for number, line in enumerate(self.lines):
            drawing.text(x + PADDING, y + TITLE - 4 + number * LINE, shortened(line, 27), anchor="start", size=11, bold=number == 0)
        for child in self.children.values():
            child.draw(drawing, x, y)
        top = y + PADDING + len(self.lines) * LINE
        for number, colour in enumerate(self.vfs):
            drawing.cell(x + PADDING + number % VFS_IN_A_ROW * VF_STEP, top + number // VFS_IN_A_ROW * VF_STEP, VF_SIZE, VF_SIZE,
                         colour, line="#666666")


def shortened(text, most):
    return text if len(text) <= most else text[:most - 1] + "…"


def around(top, device):
    """The innermost box around a device: NUMA node, host bridge, and each switch by its upstream port."""
    numa = device["numaNode"]
    box = top.child(numa, "plain", "NUMA node unknown" if numa is None else f"NUMA node {numa}")
    host, *ports = device["bridges"] or ["without a host bridge"]
    box = box.child(host, "switch", f"host bridge {host}")
    # Below a host bridge: a root port, then each switch as its upstream and its downstream port.
    for port in ports[1:-1:2]:
        box = box.child(port, "pod", f"PCIe switch {port}")
    return box


def node(report):
    top = Box("plain", [])
    for one in report["accelerators"]:
        box = around(top, one).child(one["address"], "gpu", one["name"])
        box.lines += [one["address"]] + ([one["uuid"]] if "uuid" in one else [])
    for one in report["nics"]:
        box = around(top, one).child(one["address"], "nic", f"{one['name']} {one['netdev']}")
        box.lines.append(f"{one['address']} {one['rdmaDevice']}")
        if "rail" in one:
            box.lines.append(f"rail {one['rail']}" + (f" VLAN {one['vlan']}" if "vlan" in one else ""))
        used = len(one["vfsInUse"])
        box.lines.append("in use by a pod" if one["inUse"] else f"{used} of {one['vfs']} VFs in use" if one["vfs"] else "no VFs")
        box.vfs = [USED] * used + [FREE] * (one["vfs"] - used)
    top.measure(2 * ROW_WIDTH)
    drawing = Drawing(max(top.width, ROW_WIDTH), top.height + 2 * TITLE, f"PCIe topology of {report['node']}")
    drawing.text(PADDING, TITLE, f"Node {report['node']}", anchor="start", bold=True)
    for child in top.children.values():
        child.draw(drawing, 0, 0)
    for x, colour, meaning in ((PADDING, FREE, "VF free"), (PADDING + 90, USED, "VF in use")):
        drawing.cell(x, top.height + 4, VF_SIZE, VF_SIZE, colour, line="#666666")
        drawing.text(x + 14, top.height + 12, meaning, anchor="start", size=11)
    return drawing


def matrix(report):
    nodes, marks = report["nodes"], report["marks"]
    cell = min(max(480 // max(len(nodes), 1), 2), 16)
    side, names, gap, columns = len(nodes) * cell, 120, 40, 2
    rows = -(-len(report["rails"]) // columns)
    wide, high = names + max(side, 160) + gap, side + 2 * TITLE + gap
    faults = [fault["text"] for fault in report["faults"][:20]] or ["no faults"]
    bottom = 2 * TITLE + rows * high
    drawing = Drawing(max(columns * wide + 2 * PADDING, 900), bottom + (len(faults) + 1) * TITLE, "Who reaches whom on each rail")
    x = PADDING
    for meaning in marks.values():
        drawing.cell(x, PADDING, 12, 12, COLOURS.get(meaning, "#eaeef2"))
        drawing.text(x + 16, PADDING + 10, meaning, anchor="start", size=10, colour=QUIET)
        x += 30 + 6 * len(meaning)
    good = next((mark for mark, meaning in marks.items() if meaning == "reachable"), ".")
    for number, rail in enumerate(report["rails"]):
        left, top = PADDING + number % columns * wide, 2 * TITLE + number // columns * high
        drawing.text(left, top + 12, rail["rail"], anchor="start", bold=True)
        drawing.cell(left + names, top + TITLE, side, side, COLOURS["reachable"])
        for row, name in enumerate(nodes):
            if row % -(-10 // cell) == 0:
                drawing.text(left, top + TITLE + row * cell + max(cell // 2 + 4, 8), shortened(name, 18), anchor="start", size=10)
            drawing.runs(left + names, top + TITLE + row * cell, cell, rail["rows"][row], good,
                         lambda mark: COLOURS.get(marks.get(mark), "#eaeef2"))
    for number, fault in enumerate(faults):
        drawing.text(PADDING, bottom + number * TITLE, shortened(fault, 140), anchor="start")
    return drawing


def draw(report):
    if "nics" in report and "accelerators" in report:
        return node(report)
    if "marks" in report and "rails" in report:
        return matrix(report)
    raise ValueError("neither `railctl topology -o json` nor `railctl reachability -o json FILE...`")


def main():
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    try:
        print(draw(json.load(sys.stdin)).svg(), end="")
    except (ValueError, KeyError, TypeError) as error:
        print(f"railctl.py: the input is no report: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
