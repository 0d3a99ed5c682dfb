"""What Prometheus would have of the pages in scrape/, had it asked for them each half a minute of the last half an hour.

A file is a page as a node's railheadd answers it, NODE.metrics.txt or NODE.nics.txt: the first a real one with other figures, the second
composed, since it takes NICs with RDMA. It is the latest scrape; counters came to
it evenly from half of what it says. Labels of the target are those that manifests/components/monitoring gives.
"""
import pathlib
import re

STEP, SPAN = 30, 1800
PAGES = {'metrics': '/metrics', 'nics': '/metrics/nics'}
COUNTER = re.compile(r'_(total|bucket|sum|count)$')


def pages():
    """Node, page, text."""
    for path in sorted((pathlib.Path(__file__).parent / 'scrape').glob('*.txt')):
        node, page, _ = path.name.split('.')
        yield node, page, path.read_text(encoding='utf-8')


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
