#!/usr/bin/python3 -B
"""rules.py - the alerts of manifests/components/monitoring fire on the faults that they are for, and on nothing that looks like them.

What is checked: promtool accepts the rules, the names and types of the metrics, and the configuration that docs/operate/alerts.md
shows; each alert has severity, summary, description, a section in docs/reference/runbooks.md and a row in docs/reference/alerts.md,
and reads only metrics that are documented; each has a fault on which it fires, with the labels and words that are expected, and a
near miss on which it does not (cases/*.yaml); what inhibition.yaml names are alerts.
exit status: 0; 1 with a line for each problem.

Cases: `define` names sets of labels, `$name` stands for one; {1..3} in a series makes three of it; values are promtool's, at one a
minute. `pending` is a time at which the fault is there and the alert still waits: the last one before it fires. Severity, summary and
runbook of what is expected are the rule's own.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

import sources

SEVERITIES = {'critical', 'warning', 'info'}
RUNBOOK = re.compile(r'^docs/reference/runbooks\.md#([\w-]+)$')


def expand(text, defined):
    """$name by what it stands for, which may name others."""
    while found := re.search(r'\$(\w+)', text):
        text = text.replace(found[0], defined[found[1]])
    return text


def each(series):
    """All series that {1..3} stands for; two of them in one series count together."""
    numbers = re.search(r'\{(\d+)\.\.(\d+)\}', series)
    if not numbers:
        return [series]
    return [re.sub(r'\{\d+\.\.\d+\}', str(n), series) for n in range(int(numbers[1]), int(numbers[2]) + 1)]


def values(text):
    """promtool's, without the short form 0x5, which older ones do not know."""
    return ' '.join(re.sub(r'^(-?[\d.e]+)x', r'\1+0x', word) for word in str(text).split())


def labels(text):
    return dict(re.findall(r'(\w+)="([^"]*)"', text))


def test_of(name, rule, case, defined):
    """In promtool's words."""
    series = [{'series': one, 'values': values(steps)} for key, steps in case['series'].items() for one in each(expand(key, defined))]
    expected = [{'exp_labels': labels(expand(alert['labels'], defined)) | rule['labels'],
                 'exp_annotations': {'summary': rule['annotations']['summary'], 'description': ' '.join(alert['says'].split()),
                                     'runbook_url': rule['annotations']['runbook_url']}} for alert in case.get('alerts', [])]
    test = {'name': f'{name}: {case.get("why", "the fault")}', 'interval': '1m', 'input_series': series,
            'alert_rule_test': [{'alertname': name, 'eval_time': case['at'], 'exp_alerts': expected}]}
    if 'pending' in case:
        test['promql_expr_test'] = [{'expr': f'count(ALERTS{{alertname="{name}", alertstate="pending"}})', 'eval_time': case['pending'],
                                     'exp_samples': [{'labels': '{}', 'value': len(expected)}]}]
    return test


def records_of(content):
    """Of each recording rule that has cases, what it records."""
    defined = content['define']
    return [{'name': name, 'interval': '1m',
             'input_series': [{'series': one, 'values': values(steps)} for key, steps in case['series'].items()
                              for one in each(expand(key, defined))],
             'promql_expr_test': [{'expr': name, 'eval_time': case['at'], 'exp_samples': [
                 {'labels': f'{name}{{{expand(of, defined)}}}', 'value': float(value)} for of, value in case['samples'].items()]}]}
            for name, cases in content.get('records', {}).items() for case in cases]


def tests(alerts, problems):
    """Of each alert, those that fire and those that do not, by the file of the rules."""
    made, covered = {}, set()
    for path in sorted((pathlib.Path(__file__).parent / 'cases').glob('*.yaml')):
        content = yaml.load(path.read_text(encoding='utf-8'), yaml.BaseLoader)      # to YAML, 0x5 is a number
        made.setdefault(path.name, []).extend(records_of(content))
        for name, cases in content.get('alerts', {}).items():
            if name not in alerts:
                problems.append(f'{path.name}: there is no alert {name}')
                continue
            covered.add(name)
            if ('for' in alerts[name]) != any('pending' in case for case in cases['fires']):
                problems.append(f'{path.name}: {name} has `for`, and no case says when it is pending, or the other way round')
            for kind in ('fires', 'quiet'):
                if not cases.get(kind):
                    problems.append(f'{path.name}: {name} has no case under {kind}')
                for case in cases.get(kind, []):
                    if (kind == 'fires') != bool(case.get('alerts')):
                        problems.append(f'{path.name}: {name}: a case under {kind} expects otherwise')
                    made.setdefault(path.name, []).append(test_of(name, alerts[name], case, content['define']))
    problems += [f'{name} has no cases' for name in sorted(alerts.keys() - covered)]
    return made


def read_by(name, files):
    """What a file of rules needs: itself, and those that record what it reads."""
    records = {rule['record']: other for other, spec in files.items() for group in spec['groups'] for rule in group['rules']
               if 'record' in rule}
    needed, new = set(), {name}
    while new:
        needed |= new
        rules = [rule for other in new for group in files[other]['groups'] for rule in group['rules']]
        new = {records[read] for rule in rules for read in sources.names_in(rule['expr']) if read in records} - needed
    return needed


def of_alert(rule, sections, listed):
    """Sentences."""
    name, annotations = rule['alert'], rule.get('annotations', {})
    if rule.get('labels', {}).get('severity') not in SEVERITIES:
        yield f'{name} has no severity of {sorted(SEVERITIES)}'
    yield from (f'{name} has no {word}' for word in ('summary', 'description') if not annotations.get(word))
    runbook = RUNBOOK.match(annotations.get('runbook_url', ''))
    if not runbook or runbook[1] != name.lower():
        yield f'{name} has no runbook_url docs/reference/runbooks.md#{name.lower()}'
    if name not in sections:
        yield f'docs/reference/runbooks.md has no section {name}'
    if name not in listed:
        yield f'docs/reference/alerts.md does not tell of {name}'
    elif listed[name] != (rule['labels'].get('severity'), rule.get('for', '')):
        yield f'docs/reference/alerts.md says {listed[name]} of {name}, the rule {rule["labels"].get("severity")}, {rule.get("for", "at once")}'


def of_inhibition(alerts):
    for rule in yaml.safe_load((sources.COMPONENT / 'inhibition.yaml').read_text(encoding='utf-8'))['inhibit_rules']:
        for matcher in rule['source_matchers'] + rule['target_matchers']:
            names = re.fullmatch(r'alertname(?:="(\w+)"|=~"([\w|]+)")', matcher)
            yield from (f'inhibition.yaml: there is no alert {name}' for name in ((names[1] or names[2]).split('|') if names else [])
                        if name not in alerts)


def page_of_metrics():
    """The documented metrics as Prometheus reads them; unit tests hold the served pages to the same names, types and help texts."""
    for name, kind, text in re.findall(r'^\| `(\w+)` \| (gauge|counter|histogram) \|[^|]*\| (.*) \|$', sources.document('reference/metrics.md'), re.M):
        yield f'# HELP {name} {text}\n# TYPE {name} {kind}\n'
        yield f'{name}_bucket{{le="+Inf"}} 0\n{name}_sum 0\n{name}_count 0\n' if kind == 'histogram' else f'{name} 0\n'


def main():
    problems = []
    alerts = {rule['alert']: rule for rule in sources.rules() if 'alert' in rule}
    sections = re.findall(r'^## (\w+)$', sources.document('reference/runbooks.md'), re.M)
    table = sources.document('reference/alerts.md')
    listed = {name: (severity, '' if time == 'at once' else time)
            for name, severity, time in re.findall(r'^\| \[(\w+)\]\(\.\./reference/runbooks\.md#\w+\) \| (\w+) \| ([^|]*?) \|', table, re.M)}
    for rule in alerts.values():
        problems += of_alert(rule, sections, listed)
    problems += [f'docs/reference/runbooks.md: there is no alert {name}' for name in sections if name.startswith('Railhead') and name not in alerts]
    problems += [f'docs/reference/alerts.md: there is no alert {name}' for name in listed if name not in alerts]
    for rule in sources.rules():
        problems += [f'no metric {name} is in docs/reference/metrics.md' for name in sources.unknown(sources.names_in(rule['expr']))]
    problems += of_inhibition(alerts)
    made = tests(alerts, problems)
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory)
        files = sources.rule_files()
        for name, spec in files.items():
            (work / name).write_text(yaml.safe_dump(spec, sort_keys=False), encoding='utf-8')
        # promtool's own order is left to chance; this is that of who reads what others record.
        order = [f'{name}.yaml' for name in ('traffic', 'rails', 'reachability', 'devices', 'daemon', 'addresses')]
        for name, of_file in made.items():
            needed = sorted(read_by(name, files), key=order.index)
            test = {'rule_files': needed, 'evaluation_interval': '1m', 'tests': of_file,
                    'group_eval_order': [group['name'] for one in needed for group in files[one]['groups']]}
            (work / f'test-{name}').write_text(yaml.safe_dump(test, sort_keys=False), encoding='utf-8')
        shown = [block for block in re.findall(r'^```yaml\n(.*?)^```', sources.document('operate/alerts.md'), re.M | re.S) if 'scrape_configs' in block]
        (work / 'config').write_text(shown[0] if shown else 'scrape_configs: none', encoding='utf-8')
        for command in (['check', 'rules', *sorted(files)], ['check', 'config', 'config'], ['check', 'metrics'],
                        ['test', 'rules', *(f'test-{name}' for name in sorted(made))]):
            page = ''.join(page_of_metrics())
            done = subprocess.run(['promtool', *command], cwd=work, input=page, capture_output=True, text=True, check=False)
            # Of metrics promtool only prints what it minds.
            if done.returncode != 0 or command[1] == 'metrics' and done.stderr:
                problems.append(f'promtool {command[0]} {command[1]}:\n{done.stdout}{done.stderr}')
    for problem in problems:
        print(f'rules.py: {problem}', file=sys.stderr)
    if not problems:
        print(f'{len(alerts)} alerts are as they should be, in {sum(map(len, made.values()))} cases with the recording rules')
    sys.exit(1 if problems else 0)


main()
