#!/usr/bin/python3 -B
"""dashboards.py - the pictures of manifests/components/monitoring/dashboards in docs/operate/alerts.md.

usage: docs/pictures/dashboards.py [NAME...]      default: all, as railhead-rails
Every panel with what a real Prometheus answers to its queries. What it is asked about is made up: the sample page gpu-001 of
tests/system/alerts/scrape on four nodes, for two hours, with one incident. The cable of rail1 at gpu-002 damages frames for 48
minutes. Then its link is down, and the job of the four pods waits. Grafana draws more
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
NODES, NODE, RAIL = ("gpu-001", "gpu-002", "gpu-003", "gpu-004"), "gpu-002", "rail1"
DAMAGED, DOWN = NOW - 3600, NOW - 720
LOSS = re.compile(r"timeout|out_of_sequence|packet_seq")
OF_NIC = re.compile(r"railhead_(nic|vf|rdma)_")
ALERTS = [f'alertname="{name}",severity="warning",node="{NODE}",rail="{RAIL}",switch="leaf1"' for name in ("RailheadLinkDown", "RailheadRailDead")] + [
    f'alertname="RailheadDeviceUnhealthy",severity="warning",node="{NODE}",rail="{RAIL}",rule="link"']
UNIT, WIDTH, TITLE = 26, 1248, 18
COLOURS = ["#3274d9", "#e0752d", "#37872d", "#c4162a", "#8f3bb8", "#b8860b", "#148a8a", "#7c2855"]


# ---- what Prometheus has ---------------------------------------------------------------

def rate(name, labels, node, at):
    """Of a counter at a moment, as a part of what it is on the whole."""
    if name == "railhead_nic_carrier_changes_total":
        return 0
    # One for all buckets of a histogram.
    phase = zlib.crc32((node + re.sub(r',?le="[^"]*"', "", labels)).encode()) % 628 / 100
    wobble = 1 + 0.18 * math.sin(at / 540 + phase) + 0.07 * math.sin(at / 97 + 3 * phase)
    on_rail, here = f'rail="{RAIL}"' in labels, node == NODE
    if at >= DAMAGED and on_rail and name == "railhead_rail_probe_answers_total":
        return (0 if here else 2 / 3) if at >= DOWN else 0.9 if here else 0.97
    if at < DAMAGED or not OF_NIC.match(name):
        return wobble
    if at >= DOWN:
        return 0
    if LOSS.search(name):
        return wobble * (1 if not on_rail else 90 if here else 30)
    return wobble * (0.4 if on_rail else 0.8)


def added(name, labels, node, at):
    """What the incident adds to a counter at a moment."""
    if node != NODE:
        return 0
    if name == "railhead_health_changes_total" and labels == 'rule="link",to="unhealthy"':
        return 8 * (at == DOWN)
    if f'rail="{RAIL}"' not in labels:
        return 0
    if name == "railhead_nic_carrier_changes_total":
        return 2 * (at == DAMAGED + 1200) + (at == DOWN)
    return 40 * STEP if name == "railhead_nic_receive_errors_total" and DAMAGED <= at < DOWN else 0


def peers(state, at, rail, node):
    """Of the three other nodes."""
    if at < DAMAGED or rail != RAIL:
        return 3 if state == "reachable" else 0
    if node == NODE:
        return 3 if state == ("unknown" if at >= DOWN else "lossy") else 0
    return {"reachable": 2, "silent" if at >= DOWN else "lossy": 1}.get(state, 0)


def gauge(name, labels, value, node, at):
    """None: it is missing."""
    of = dict(re.findall(r'(\w+)="([^"]*)"', labels))
    if name == "railhead_rail_peers":
        return peers(of["state"], at, of["rail"], node)
    if node != NODE or at < DOWN:
        return value
    if name == "railhead_devices":
        return {("healthy", "free"): 18, ("healthy", "in_use"): 3, ("unhealthy", "free"): 6, ("unhealthy", "in_use"): 1}[of["health"], of["use"]]
    if labels == 'rule="link"':
        return 8
    if of.get("rail") != RAIL:
        return value
    if re.fullmatch(r"railhead_(nic_speed_bytes|rail_switch_info|rail_peer_rtt_(max_)?seconds)", name):
        return None
    return 0 if re.search(r"_(carrier|healthy|port_active|reachable|gateway_answers)$", name) else value


def series(name, labels, value, node):
    """Lines of one, from the oldest."""
    of_node = f'node="{node}",instance="{node}:9917",job="railheadd",metrics_path="{scrapes.PAGES[page_of(name)]}"'
    growing = scrapes.COUNTER.search(name) and name != "process_start_time_seconds"
    total = 0.5 * float(value)
    for at in range(NOW - SPAN, NOW + 1, STEP):
        if growing:
            total += 0.5 * float(value) * STEP / SPAN * rate(name, labels, node, at) + added(name, labels, node, at)
        shown_now = total if growing else gauge(name, labels, value, node, at)
        if shown_now is not None:
            yield f"{name}{{{labels + ',' if labels else ''}{of_node}}} {shown_now} {at}"


def page_of(name):
    return "nics" if OF_NIC.match(name) else "metrics"


def well(page):
    """The samples of gpu-001 without the faults that the tests need there."""
    for name, labels, value in scrapes.samples_of(page):
        if name in ("railhead_rail_bad_peer", "railhead_rail_peer_rtt_seconds", "railhead_rail_peer_rtt_max_seconds"):
            continue
        if name in ("railhead_pod_rail_reachable", "railhead_rail_reachable", "railhead_rail_gateway_answers"):
            value = "1"
        yield name, labels.replace('pod="llm-0"', 'pod="llm-worker-0"'), "359998" if name == "railhead_rail_probe_answers_total" else value


def samples():
    lines = []
    for number, node in enumerate(NODES):
        for page, text in [one[1:] for one in scrapes.pages() if one[0] == "gpu-001"]:
            for name, labels, value in [*well(text), ("up", "", "1")]:
                labels = labels.replace("llm-worker-0", f"llm-worker-{number}").replace('Ethernet1"', f'Ethernet{1 + 4 * number}"')
                if name != "up" or page == "metrics":
                    lines += series(name, labels, value, node)
        for rail in ("rail0", "rail1", "rail2", "rail3"):
            lines += series("railhead_rail_peer_rtt_seconds", f'rail="{rail}"', "0.000014", node)
            lines += series("railhead_rail_peer_rtt_max_seconds", f'rail="{rail}"', "0.000021", node)
        lines += bad_peers(node)
    for labels in ALERTS:
        lines += [f'ALERTS{{{labels},alertstate="firing"}} 1 {at}' for at in range(DOWN + 300, NOW + 1, STEP)]
    return "\n".join(lines) + "\n"


def bad_peers(node):
    for peer in NODES:
        if peer == node or NODE not in (peer, node):
            continue
        for state, begin, end in (("lossy", DAMAGED, DOWN), ("silent", DOWN, NOW + 1)):
            if state == "silent" and node == NODE:
                continue
            for at in range(begin, end, STEP):
                yield f'railhead_rail_bad_peer{{rail="{RAIL}",peer="{peer}",state="{state}",node="{node}",instance="{node}:9917",job="railheadd"}} 1 {at}'


def values_of(server, board):
    """Of its variables: the node of the incident, else the first, or all where several can be chosen."""
    values = {"__rate_interval": "5m", "__interval": "2m", "__range": "2h"}
    for variable in board["templating"]["list"][1:]:
        metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
        found = server.api("series", **{"match[]": filled(metric, values), "start": NOW - SPAN, "end": NOW})
        names = sorted({one[label] for one in found if one.get(label)})
        values[variable["name"]] = "|".join(names) if variable["multi"] else NODE if NODE in names else names[0]
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
