#!/usr/bin/env python3
"""draw.py - the pictures of docs/start/concepts.md and docs/operate/reachability.md.

usage: docs/pictures/draw.py [--check]
  --check   write nothing; exit status 1 when a picture is not what would be written
"""
import json
import pathlib
import sys
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
INK, QUIET, LINE = "#1b1f24", "#57606a", "#8c959f"
FILLS = {"gpu": "#dafbe1", "nic": "#ddf4ff", "pod": "#fff8c5", "switch": "#fbefff", "plain": "#f6f8fa"}


class Drawing:
    """Shapes in the order in which they are put; units are pixels."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.shapes = []

    def box(self, x, y, width, height, text="", fill="plain", dashed=False):
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.shapes.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" '
                           f'fill="{FILLS[fill]}" stroke="{LINE}"{dash}/>')
        if text:
            self.text(x + width / 2, y + height / 2 + 4, text)

    def cell(self, x, y, width, height, colour, line="#ffffff"):
        self.shapes.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}" stroke="{line}" stroke-width="0.5"/>')

    def runs(self, x, y, cell, marks, left_out, colour):
        """A row of cells: one rectangle for each run of equal marks, none for those that the ground shows."""
        begin = 0
        for end in range(1, len(marks) + 1):
            if end == len(marks) or marks[end] != marks[begin]:
                if marks[begin] != left_out:
                    self.cell(x + begin * cell, y, (end - begin) * cell, cell, colour(marks[begin]))
                begin = end

    def text(self, x, y, text, anchor="middle", colour=INK, size=12, bold=False, halo=False):
        weight = ' font-weight="600"' if bold else ""
        # Lines that it crosses end before it.
        weight += ' stroke="#ffffff" stroke-width="5" paint-order="stroke"' if halo else ""
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" '
                           f'font-size="{size}"{weight}>{escape(text)}</text>')

    def line(self, x1, y1, x2, y2, arrow=False, dashed=False, width=1.3):
        end = ' marker-end="url(#arrow)"' if arrow else ""
        dash = ' stroke-dasharray="4 4"' if dashed else ""
        self.shapes.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{QUIET}" '
                           f'stroke-width="{width}"{dash}{end}/>')

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'font-family="Helvetica, Arial, sans-serif" role="img">',
            f"<title>{escape(self.title)}</title>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="{QUIET}"/></marker></defs>',
            f'<rect width="{self.width}" height="{self.height}" fill="#ffffff"/>',
            *self.shapes, "</svg>", ""])


def sequence(title, actors, steps, notes=(), left=96, gap=175):
    """Messages between actors, from above to below: (from, to, text); the same twice: what it does by itself."""
    step = 34
    drawing = Drawing(left * 2 + gap * (len(actors) - 1), 74 + step * len(steps) + 22 * len(notes), title)
    at = {name: left + gap * i for i, name in enumerate(actors)}
    bottom = 58 + step * len(steps)
    for name, x in at.items():
        drawing.line(x, 44, x, bottom, dashed=True, width=1)
        drawing.box(x - 68, 14, 136, 30, name)
    for number, (source, target, text) in enumerate(steps, 1):
        y = 44 + step * number
        if source == target:
            drawing.line(at[source], y - 12, at[source], y + 2, width=5)
            drawing.text(at[source] + 9, y, f"{number}. {text}", anchor="start", halo=True)
        else:
            drawing.text((at[source] + at[target]) / 2, y - 6, f"{number}. {text}", halo=True)
            drawing.line(at[source], y, at[target], y, arrow=True)
    for number, note in enumerate(notes):
        drawing.text(left - 68, bottom + 14 + 22 * number, note, anchor="start", colour=QUIET)
    return drawing


def rails():
    """Nodes face the leaf switches; NIC i of each is on leaf i, and a pod has one VF of each rail."""
    drawing = Drawing(900, 400, "Rails: NIC i of every node is on leaf switch i")

    def node(number, place):
        drawing.box(place(20, 320), 20, 320, 360)
        drawing.text(place(20, 320) + 160, 42, f"node {number}", bold=True)
        drawing.box(place(36, 62), 62, 62, 300, "pod", "pod")
        for rail in range(2):
            top = 56 + rail * 162
            drawing.box(place(112, 214), top, 214, 146, dashed=True)
            drawing.text(place(112, 84) + 42, top + 18, f"PCI switch {rail}", colour=QUIET)
            drawing.box(place(122, 66), top + 30, 66, 104, f"GPU {rail}", "gpu")
            drawing.box(place(204, 112), top + 12, 112, 122, fill="nic")
            drawing.text(place(204, 112) + 56, top + 30, f"PF of rail{rail}")
            for vf in range(2):
                drawing.box(place(222, 76), top + 42 + vf * 44, 76, 34, f"VF {vf}", "pod" if vf == number else "nic")
            # What the pod has.
            y = top + 59 + number * 44
            drawing.line(place(98, 0), y, place(222, 0), y, arrow=True)

    node(0, lambda x, width: x)
    node(1, lambda x, width: 900 - x - width)
    for rail in range(2):
        y = 56 + rail * 162 + 73
        drawing.box(390, y - 28, 120, 56, f"leaf of rail{rail}", "switch")
        drawing.line(316, y, 390, y, width=2)
        drawing.line(510, y, 584, y, width=2)
        drawing.text(450, y + 46, f"VLAN {100 + rail}, 10.{200 + rail}.0.0/16", colour=QUIET)
    return drawing


def allocate():
    return sequence(
        "One Allocate, and what comes of it",
        ["kubelet", "railheadd", "runtime", "railhead (CNI)", "container"],
        [("kubelet", "railheadd", "which first?"),
         ("railheadd", "kubelet", "one VF per rail"),
         ("kubelet", "railheadd", "Allocate VFs"),
         ("railheadd", "railheadd", "record, durable"),
         ("railheadd", "kubelet", "names of CDI devices"),
         ("kubelet", "runtime", "RunPodSandbox"),
         ("runtime", "railhead (CNI)", "ADD"),
         ("railhead (CNI)", "railhead (CNI)", "VFs into the pod"),
         ("railhead (CNI)", "runtime", "CDI specs, addresses"),
         ("kubelet", "railheadd", "PreStartContainer"),
         ("railheadd", "kubelet", "all attached: go"),
         ("kubelet", "runtime", "CreateContainer"),
         ("runtime", "container", "nodes, nccl.conf")],
        ["11 is the gate: a container of a pod whose devices are not all attached does not start."])


def add():
    return sequence(
        "One ADD",
        ["runtime", "railhead", "journal", "railhead-ipam", "kernel"],
        [("runtime", "railhead", "ADD, configuration"),
         ("railhead", "railhead", "plan: device, rail, settings"),
         ("railhead", "journal", "what will be, what was"),
         ("railhead", "railhead-ipam", "an address for each rail"),
         ("railhead", "kernel", "VLAN, MAC, rate through the PF"),
         ("railhead", "kernel", "into the pod, address, up, routes, rules"),
         ("kernel", "railhead", "carrier; nobody has the address"),
         ("railhead", "kernel", "ARP announcement; RDMA device"),
         ("kernel", "railhead", "GID index, port ACTIVE"),
         ("railhead", "journal", "CDI specs, files; done"),
         ("railhead", "runtime", "addresses, routes")],
        ["Killed anywhere after 3: the next ADD, DEL or reconcile pass restores the devices from the journal."])


def late():
    return sequence(
        "Late binding: the VF next to the pod's GPU",
        ["kubelet", "railheadd", "GPU plugin", "railhead (CNI)"],
        [("kubelet", "railheadd", "Allocate a slot"),
         ("kubelet", "GPU plugin", "Allocate a GPU, in any order"),
         ("kubelet", "railhead (CNI)", "ADD, by way of the runtime"),
         ("railhead (CNI)", "railheadd", "which VF is this slot?"),
         ("railheadd", "kubelet", "which GPUs has the pod?"),
         ("railheadd", "railheadd", "VF on the same PCI switch"),
         ("railheadd", "railhead (CNI)", "this VF, written down")],
        ["At 1 nobody knows the GPU yet: kubelet asks plugins one after the other. At 4 all is known."], gap=190)


def reach():
    """Who reaches whom on three rails, in the colours of railctl.py."""
    nodes, cell, gap = 24, 10, 50
    side = nodes * cell
    colours = {".": "#2da44e", "X": "#cf222e", "-": "#6e7781"}
    drawing = Drawing(2 * 30 + 3 * side + 2 * gap, side + 122, "Who reaches whom: three rails of 24 nodes")
    rails_of = [("rail0", "all reach all", lambda a, b: False),
                ("rail1", "gpu-017 reaches nobody", lambda a, b: 17 in (a, b)),
                ("rail2", "between gpu-[000-011] and gpu-[012-023]", lambda a, b: (a < 12) != (b < 12))]
    for number, (rail, caption, is_bad) in enumerate(rails_of):
        left, top = 30 + number * (side + gap), 40
        drawing.text(left, 26, rail, anchor="start", bold=True)
        drawing.cell(left, top, side, side, colours["."])
        for row in range(nodes):
            marks = "".join("-" if row == column else "X" if is_bad(row, column) else "." for column in range(nodes))
            drawing.runs(left, top + row * cell, cell, marks, ".", colours.get)
        drawing.text(left, top + side + 24, caption, anchor="start")
    for number, (mark, meaning) in enumerate({".": "reachable", "X": "silent", "-": "itself"}.items()):
        drawing.cell(30 + 110 * number, side + 90, 12, 12, colours[mark])
        drawing.text(48 + 110 * number, side + 100, meaning, anchor="start", colour=QUIET)
    return drawing


def topology():
    """A node as railctl says it; tests/unit/deviceplugin/tools/topology_view writes topology.json."""
    import railctl  # it draws with Drawing
    return railctl.draw(json.loads((HERE / "topology.json").read_text(encoding="utf-8")))


PICTURES = {"rails.svg": rails, "topology.svg": topology, "allocate.svg": allocate, "add.svg": add, "late-binding.svg": late, "reach.svg": reach}


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = []
    for name, draw in PICTURES.items():
        text, path = draw().svg(), HERE / name
        if not sys.argv[1:]:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    for name in stale:
        print(f"docs/pictures/{name} is not what draw.py draws: run docs/pictures/draw.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
