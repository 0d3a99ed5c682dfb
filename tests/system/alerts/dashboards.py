#!/usr/bin/python3 -B
"""dashboards.py - the dashboards of manifests/components/monitoring can be loaded, and every query of them shows something.

What is checked: ids, places and variables of panels; that queries read only metrics that docs/reference/metrics.md lists, and the sample
pages in scrape/ have these and their types; then, by a real Prometheus that has these pages and our rules, every query of every
panel and variable: none is refused, none is empty; that docs/ has a picture with each panel. The same Prometheus shows that the words of alerts can be made.
exit status: 0; 1 with a line for each problem.
"""
import re
import sys
import time
from xml.sax.saxutils import escape

import yaml

import prometheus
import scrapes
import sources

DATASOURCE = {'type': 'prometheus', 'uid': '${datasource}'}
PANELS = {'row', 'stat', 'table', 'timeseries'}
# Grafana's own.
BUILT_IN = {'__rate_interval': '5m', '__interval': '1m', '__range': '30m'}
VARIABLE = re.compile(r'\$(?:\{(\w+)\}|(\w+))')


def variables_in(text):
    return {found[0] or found[1] for found in VARIABLE.findall(text)}


def overlapping(panels):
    cells = {}
    for panel in panels:
        place = panel['gridPos']
        if place['x'] + place['w'] > 24 or min(place['w'], place['h']) < 1:
            yield f'{panel["title"]}: is not within 24 columns'
        for x in range(place['x'], place['x'] + place['w']):
            for y in range(place['y'], place['y'] + place['h']):
                if (other := cells.setdefault((x, y), panel['title'])) != panel['title']:
                    yield f'{panel["title"]}: covers {other}'
                    return


def of_form(file, board):
    """Of one dashboard, without data."""
    panels, variables = board['panels'], {one['name']: one for one in board['templating']['list']}
    if f'{board["uid"]}.json' != file or not board['title'].startswith('Railhead: '):
        yield f'uid {board["uid"]} and title "{board["title"]}" are not those of this file'
    if board.get('schemaVersion', 0) < 36 or 'railhead' not in board['tags'] or 'id' in board:
        yield 'is no dashboard of Grafana 9 or later with the tag railhead, or has the id of somebody\'s own Grafana'
    if list(variables)[0] != 'datasource' or variables['datasource']['type'] != 'datasource':
        yield 'the first variable is not the datasource'
    ids = [panel['id'] for panel in panels]
    if len(ids) != len(set(ids)):
        yield 'panels share an id'
    yield from overlapping(panels)
    used = {'datasource'}
    for panel in panels:
        title = panel['title']
        if panel['type'] not in PANELS:
            yield f'{title}: there is no panel of type {panel["type"]}'
        if panel['type'] == 'row':
            continue
        references = [target['refId'] for target in panel['targets']]
        if not references or len(references) != len(set(references)):
            yield f'{title}: no query, or two of one name'
        if not panel.get('description') or 'unit' not in panel['fieldConfig']['defaults']:
            yield f'{title}: no description or no unit'
        for target in panel['targets']:
            if target['datasource'] != DATASOURCE or panel['datasource'] != DATASOURCE:
                yield f'{title}: is bound to one datasource'
            used |= variables_in(target['expr'] + target['legendFormat'])
            yield from (f'{title}: no metric {name} is in docs/reference/metrics.md' for name in sources.unknown(sources.names_in(target['expr'])))
    for variable in list(variables.values())[1:]:
        used |= variables_in(variable['definition'])
        if variable['datasource'] != DATASOURCE or variable['query']['query'] != variable['definition']:
            yield f'variable {variable["name"]}: is bound to one datasource, or its query and definition differ'
    yield from (f'there is no variable {name}' for name in sorted(used - variables.keys() - BUILT_IN.keys()))
    yield from (f'nothing uses variable {name}' for name in sorted(variables.keys() - used))


def of_picture(file, board):
    """Made by docs/pictures/dashboards.py: it has each panel."""
    path = sources.REPO / 'docs/pictures' / file.replace('railhead-', 'dashboard-').replace('.json', '.svg')
    drawn = path.read_text(encoding='utf-8') if path.exists() else ''
    for panel in board['panels']:
        if f'>{escape(panel["title"])}<' not in drawn:
            yield f'{panel["title"]}: is not in {path.name}: run docs/pictures/dashboards.py'


def of_pages():
    """The sample pages against the document; one that it does not list would be of no metric that is there."""
    known = sources.documented()
    for name, kind in scrapes.types().items():
        if re.fullmatch(r'railhead_rdma_\w+_total', name) and kind == 'counter':       # the drivers' names, whichever these are
            continue
        if known.get(name) != kind:
            yield f'scrape/: {name} is a {kind}, and docs/reference/metrics.md says {known.get(name)}'


def filled_in(text, values):
    return VARIABLE.sub(lambda found: values.get(found[1] or found[2], found[0]), text)


def values_of(server, board, problems):
    """Of its variables, as Grafana would offer them: the last one, or all where several can be chosen."""
    values = dict(BUILT_IN)
    for variable in board['templating']['list'][1:]:
        metric, label = re.fullmatch(r'label_values\((.*), (\w+)\)', variable['definition']).groups()
        found = sorted({series[label] for series in server.api('series', **{'match[]': filled_in(metric, values)}) if label in series})
        if not found:
            problems.append(f'{board["title"]}: variable {variable["name"]} has no value')
        values[variable['name']] = '|'.join(found) if variable['multi'] else (found or [''])[-1]
    return values


def of_queries(server, board):
    problems = []
    values, now = values_of(server, board, problems), time.time()
    for panel in board['panels']:
        for target in panel.get('targets', []):
            expression = filled_in(target['expr'], values)
            try:
                if target.get('instant'):
                    found = server.api('query', query=expression, time=now)['result']
                else:
                    found = server.api('query_range', query=expression, start=now - 120, end=now, step=15)['result']
            except ValueError as error:
                problems.append(f'{board["title"]}: {panel["title"]}: {error}: {expression}')
                continue
            if not found:
                problems.append(f'{board["title"]}: {panel["title"]}: nothing of {expression}')
            wanted = set(re.findall(r'\{\{(\w+)\}\}', target['legendFormat']))
            if found and not any(wanted <= series['metric'].keys() for series in found):
                problems.append(f'{board["title"]}: {panel["title"]}: no series has all labels of the legend {target["legendFormat"]}')
    return problems


def settled(server):
    """Groups, when each was evaluated four times: rules read what other groups have recorded, and Prometheus keeps ALERTS only when
    it has looked what was about to fire before it began."""
    times = {}

    def condition():
        groups = server.api('rules')['groups']
        for group in groups:
            times.setdefault(group['name'], set()).add(group['lastEvaluation'])
        return groups if times and all(len(seen) > 4 for seen in times.values()) else None
    return condition


def of_rules(groups):
    """Alerts that the pages are enough for."""
    rules = [rule for group in groups for rule in group['rules']]
    yield from (f'{rule["name"]}: {rule.get("lastError")}' for rule in rules if rule['health'] != 'ok')
    alerts = [alert for rule in rules for alert in rule.get('alerts', [])]
    if not alerts:
        yield 'no alert is about to fire, though the pages have faults'
    for alert in alerts:
        words = ' '.join(alert['annotations'].values())
        if 'error expanding' in words or '<no value>' in words or '%!' in words:
            yield f'{alert["labels"]["alertname"]}: {words}'


def main():
    boards = sources.dashboards()
    problems = [f'{file}: {problem}' for file, board in boards.items() for check in (of_form, of_picture) for problem in check(file, board)]
    if len({board['uid'] for board in boards.values()}) != len(boards) or not boards:
        problems.append('there is no dashboard, or two have one uid')
    problems += of_pages()
    queries = sum(len(panel.get('targets', [])) for board in boards.values() for panel in board['panels'])
    if not problems:
        rules = {name: yaml.safe_dump(spec) for name, spec in sources.rule_files().items()}
        with prometheus.Prometheus(scrapes.openmetrics(int(time.time())), rules) as server:
            problems += of_rules(server.wait('evaluated the rules', settled(server)))
            for board in boards.values():
                problems += of_queries(server, board)
    for problem in problems:
        print(f'dashboards.py: {problem}', file=sys.stderr)
    if not problems:
        print(f'{len(boards)} dashboards with {queries} queries show what is in the sample pages')
    sys.exit(1 if problems else 0)


main()
