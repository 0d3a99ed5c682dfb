#!/usr/bin/python3 -B
"""dashboards.py - the pictures of manifests/components/monitoring/dashboards in docs/operate/monitoring.md.

usage: docs/pictures/dashboards.py [NAME...]      default: all, as railhead-rails
Every panel with what a real Prometheus answers to its queries. What it is asked about is made up: the sample pages of
tests/system/alerts/scrape on four nodes, for two hours, in which rail1 is congested for half an hour. Grafana draws more
beautifully, and has the same titles, places, queries and legends. tests/system/alerts/dashboards.py sees that no panel is missing.
"""
import json
import math
import pathlib
import re
import sys
import zlib

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests/system/alerts"))
import prometheus  # noqa: E402
import scrapes  # noqa: E402
import sources  # noqa: E402
from draw import INK, LINE, QUIET, Drawing  # noqa: E402

NOW, SPAN, STEP = 1_767_261_600, 7200, 60
CONGESTED = range(NOW - 4500, NOW - 2700)
NODES = {"gpu-001": ("gpu-001", "gpu-003"), "gpu-002": ("gpu-002", "gpu-004")}
TROUBLE = re.compile(r"pause|discard|timeout|out_of_sequence|packet_seq|rnr|cnp|ecn|retr")
ALERTS = ['alertname="RailheadPauseReceived",severity="warning",node="gpu-003",rail="rail1",switch="leaf1"',
          'alertname="RailheadPodRailSlow",severity="warning",node="gpu-001",rail="rail1",namespace="train",pod="llm-worker-0"']
UNIT, WIDTH, TITLE = 26, 1248, 18
COLOURS = ["#3274d9", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#b8860b", "#148a8a", "#7c2855"]


# ---- what Prometheus has ---------------------------------------------------------------

def rate(name, labels, at):
    """Of a counter at a moment, as a part of what it is on the whole."""
    phase = zlib.crc32(labels.encode()) % 628 / 100
    wobble = 1 + 0.18 * math.sin(at / 540 + phase) + 0.07 * math.sin(at / 97 + 3 * phase)
    if 'rail="rail1"' not in labels or at not in CONGESTED:
        return wobble
    return 9 * wobble if TROUBLE.search(name) else 0.45 * wobble


def series(name, labels, value):
    """Lines of one, from the oldest."""
    growing = scrapes.COUNTER.search(name) and name != "process_start_time_seconds"
    total = 0.5 * float(value)
    for at in range(NOW - SPAN, NOW + 1, STEP):
        if growing:
            total += 0.5 * float(value) * STEP / SPAN * rate(name, labels, at)
        yield f"{name}{{{labels}}} {total if growing else value} {at}"


def samples():
    lines = []
    for node, page, text in scrapes.pages():
        for name, labels, value in [*scrapes.samples_of(text), ("up", "", "1")]:
            for twin in NODES[node]:
                target = f'job="railheadd",instance="{twin}:9917",node="{twin}",metrics_path="{scrapes.PAGES[page]}"'
                lines += series(name, f"{labels},{target}" if labels else target, value)
    for labels in ALERTS:
        lines += series("ALERTS", labels + ',alertstate="firing"', "1")
    return "\n".join(lines) + "\n"


def values_of(server, board):
    """Of its variables: the first, or all where several can be chosen."""
    values = {"__rate_interval": "5m", "__interval": "2m", "__range": "2h"}
    for variable in board["templating"]["list"][1:]:
        metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
        found = server.api("series", **{"match[]": filled(metric, values), "start": NOW - SPAN, "end": NOW})
        names = sorted({one[label] for one in found if one.get(label)})
        values[variable["name"]] = "|".join(names) if variable["multi"] else names[0]
    return values


def filled(text, values):
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: values.get(found[1] or found[2], found[0]), text)


# ---- what is drawn ----------------------------------------------------------------------

def shown(value, unit):
    """As Grafana would: three figures and a unit."""
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    suffix = {"Bps": "B/s", "bytes": "B", "s": "s", "pps": "p/s", "cps": "/s"}.get(unit, "")
    if unit == "s" and 0 < abs(value) < 1:
        return f"{1e6 * value:.3g} us" if value < 1e-3 else f"{1e3 * value:.3g} ms"
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g} {prefix}{suffix}"
    return f"{value:.3g} {suffix}".strip()


def legend(form, metric):
    return re.sub(r"\{\{(\w+)\}\}", lambda found: metric.get(found[1], ""), form).strip() or "value"


def cut(text, width):
    most = max(4, int(width / 6.2))
    return text if len(text) <= most else text[:most - 1] + "…"


def stat(drawing, place, panel, answers):
    x, y, width, height = place
    found = answers[0][1]
    value = float(found[0]["value"][1]) if found else 0
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    colour = [step["color"] for step in steps if step["value"] is None or value >= step["value"]][-1]
    text = shown(value, "short")
    if panel["options"]["textMode"] == "name" and found:
        text = legend(panel["targets"][0]["legendFormat"], found[0]["metric"])
    drawing.text(x + width / 2, y + height / 2 + 20, text, size=28, bold=True, colour={"green": "#37872d", "red": "#c4162a"}[colour])


def rows_of(panel, answers):
    """Heads and rows, joined by their labels as Grafana's `merge` and `organize` do."""
    change = {one["id"]: one["options"] for one in panel.get("transformations", [])}.get("organize", {})
    hidden, names = change.get("excludeByName", {}), change.get("renameByName", {})
    rows, heads = {}, []
    for query, found in answers:
        column = "Value" if len(answers) == 1 else f"Value #{query}"
        for one in found:
            labels = {key: text for key, text in one["metric"].items() if key not in hidden and key != "__name__"}
            row = rows.setdefault(tuple(sorted(labels.items())), dict(labels))
            if column not in hidden:
                row[column] = shown(float(one["value"][1]), panel["fieldConfig"]["defaults"]["unit"])
            heads += [key for key in row if key not in heads]
    return [names.get(head, head) for head in heads], [[row.get(head, "") for head in heads] for row in rows.values()]


def table(drawing, place, panel, answers):
    x, y, width, height = place
    heads, rows = rows_of(panel, answers)
    if not heads:
        drawing.text(x + width / 2, y + height / 2 + 10, "No data", colour=QUIET)
        return
    lengths = [max(len(text) for text in column) + 2 for column in zip(heads, *rows)]
    at = x + 10
    for number, (head, length) in enumerate(zip(heads, lengths)):
        column = (width - 20) * length / sum(lengths)
        drawing.text(at, y + 44, cut(head, column), anchor="start", bold=True, size=11)
        for line, row in enumerate(rows[:int((height - 56) / 18)]):
            drawing.text(at, y + 64 + 18 * line, cut(row[number], column), anchor="start", size=11)
        at += column


def plot(drawing, place, panel, answers):
    x, y, width, height = place
    unit = panel["fieldConfig"]["defaults"]["unit"]
    forms = {target["refId"]: target["legendFormat"] for target in panel["targets"]}
    lines = [(legend(forms[query], one["metric"]), one["values"]) for query, found in answers for one in found]
    if len(lines) > 4:
        lines = sorted(lines, key=lambda line: -max(float(value) for _, value in line[1]))[:8]
    if not lines:
        drawing.text(x + width / 2, y + height / 2 + 10, "No data", colour=QUIET)
        return
    values = [float(value) for _, points in lines for _, value in points if math.isfinite(float(value))] or [0]
    top = max(values) * 1.08 or 1
    left, right, upper, lower = x + 62, x + width - 12, y + 34, y + height - 52
    for part in (0, 0.5, 1):
        level = lower - part * (lower - upper)
        drawing.shapes.append(f'<path d="M{left} {level:.0f}H{right}" stroke="#e3e6ea"/>')
        drawing.text(left - 6, level + 4, shown(part * top, unit), anchor="end", size=10, colour=QUIET)
    for part, text in ((0, "-2 h"), (0.5, "-1 h"), (1, "now")):
        drawing.text(left + part * (right - left), lower + 14, text, size=10, colour=QUIET, anchor="end" if part == 1 else "middle")
    mark = x + 12
    for number, (name, points) in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{left + (at - NOW + SPAN) / SPAN * (right - left):.0f},{lower - float(value) / top * (lower - upper):.0f}"
                        for at, value in points if math.isfinite(float(value)))
        drawing.shapes.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.4"/>')
        name = cut(name, 170)
        if mark + 16 + 6 * len(name) < x + width:
            drawing.shapes.append(f'<rect x="{mark:.0f}" y="{y + height - 25}" width="9" height="3" fill="{colour}"/>')
            drawing.text(mark + 13, y + height - 20, name, anchor="start", size=10)
            mark += 24 + 5.6 * len(name)


def picture(server, board):
    values = values_of(server, board)
    panels = board["panels"]
    drawing = Drawing(WIDTH, 50 + UNIT * max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in panels), board["title"])
    chosen = ", ".join(f"{one['name']}: {'all' if one['multi'] else values[one['name']]}" for one in board["templating"]["list"][1:])
    drawing.text(12, 28, board["title"], anchor="start", size=17, bold=True)
    drawing.text(WIDTH - 12, 28, f"{chosen}; data are made up", anchor="end", colour=QUIET)
    for panel in panels:
        grid = panel["gridPos"]
        x, y = 6 + grid["x"] * (WIDTH - 12) / 24, 42 + UNIT * grid["y"]
        place = (x + 3, y + 3, grid["w"] * (WIDTH - 12) / 24 - 6, UNIT * grid["h"] - 6)
        if panel["type"] == "row":
            drawing.text(x + 4, y + TITLE, panel["title"], anchor="start", size=14, bold=True, colour=QUIET)
            continue
        drawing.shapes.append(f'<rect x="{place[0]:g}" y="{place[1]:g}" width="{place[2]:g}" height="{place[3]:g}" rx="3" fill="none" stroke="{LINE}" stroke-opacity="0.5"/>')
        drawing.text(place[0] + 10, place[1] + TITLE, panel["title"], anchor="start", bold=True, colour=INK)
        answers = []
        for target in panel["targets"]:
            query = filled(target["expr"], values)
            found = (server.api("query_range", query=query, start=NOW - SPAN + 300, end=NOW, step=120)
                     if panel["type"] == "timeseries" else server.api("query", query=query, time=NOW))
            answers.append((target["refId"], found["result"]))
        {"stat": stat, "table": table, "timeseries": plot}[panel["type"]](drawing, place, panel, answers)
    return drawing.svg()


def main():
    boards = sources.dashboards()
    wanted = sys.argv[1:] or [name.removesuffix(".json") for name in boards]
    rules = {name: yaml.safe_dump(spec) for name, spec in sources.rule_files().items()}
    with prometheus.Prometheus(samples(), {}) as server:
        # Rules that read what others have recorded want another turn.
        for _ in range(3):
            server.backfill(rules, NOW - SPAN, NOW, STEP)
        for name in wanted:
            path = HERE / f"dashboard-{name.removeprefix('railhead-')}.svg"
            path.write_text(picture(server, boards[f"{name}.json"]), encoding="utf-8")
            print(f"{path.relative_to(HERE.parents[1])}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
