"""What Prometheus would have of the pages in scrape/, had it asked for them each half a minute of the last half an hour.

A page is gpu-001's as its railheadd answers it, /metrics a real one with other figures, /metrics/nics composed, since it takes NICs
with RDMA. gpu-002 has the same but for its names and gpu-002.changes.txt; there "-" means that the series is missing. Each is the latest
scrape; counters came to it evenly from half of what it says. Labels of the target are those that manifests/components/monitoring gives.
"""
import pathlib
import re

STEP, SPAN = 30, 1800
PAGES = {'metrics': '/metrics', 'nics': '/metrics/nics'}
COUNTER = re.compile(r'_(total|bucket|sum|count)$')


SCRAPE = pathlib.Path(__file__).parent / 'scrape'
RENAMED = (('llm-worker-0', 'llm-worker-1'), ('llm-0', 'llm-1'), ('Ethernet1"', 'Ethernet5"'), ('peer="gpu-002"', 'peer="gpu-001"'))


def changed(text, changes):
    """gpu-002's page: gpu-001's under other names, with what differs."""
    for ours, theirs in RENAMED:
        text = text.replace(ours, theirs)
    for line in text.splitlines():
        series, _, value = line.rpartition(' ')
        value = changes.get(series, value)
        if value != '-':
            yield f'{series} {value}'
        if line.startswith('# TYPE '):
            yield from (f'{new} {value}' for new, value in changes.items() if new.startswith(line.split()[2] + '{') and new not in text)


def pages():
    """Node, page, text."""
    changes = dict(line.rsplit(' ', 1) for line in (SCRAPE / 'gpu-002.changes.txt').read_text(encoding='utf-8').splitlines())
    for page in PAGES:
        text = (SCRAPE / f'gpu-001.{page}.txt').read_text(encoding='utf-8')
        yield 'gpu-001', page, text
        yield 'gpu-002', page, '\n'.join(changed(text, changes)) + '\n'


def samples_of(text):
    """Name, labels, value."""
    for line in text.splitlines():
        if found := re.fullmatch(r'([a-z_]+)(?:\{(.*)\})? (\S+)', line):
            yield found[1], found[2] or '', found[3]


def types():
    """Of every metric in the pages."""
    return {name: kind for _, _, text in pages() for name, kind in re.findall(r'^# TYPE (\w+) (\w+)$', text, re.M)}


def openmetrics(now):
    """All of it, with times; the latest is some seconds old, since rules are evaluated for a moment that was."""
    now -= 10
    lines = []
    for node, page, text in pages():
        target = f'job="railheadd",instance="{node}:9917",node="{node}",metrics_path="{PAGES[page]}"'
        for name, labels, value in [*samples_of(text), ('up', '', '1')]:
            series = f'{name}{{{labels + "," if labels else ""}{target}}}'
            growing = COUNTER.search(name) and name != 'process_start_time_seconds'
            for age in range(SPAN, -1, -STEP):
                shown = float(value) * (1 - age / (2 * SPAN)) if growing else value
                lines.append(f'{series} {shown} {now - age}')
    return '\n'.join(lines) + '\n'
