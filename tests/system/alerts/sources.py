"""Where the rules, dashboards and documents of monitoring are, and which metrics they name."""
import json
import pathlib
import re

import yaml

REPO = pathlib.Path(__file__).resolve().parents[3]
COMPONENT = REPO / 'manifests/components/monitoring'
# Made by others: Prometheus itself, and kube-state-metrics where there is one.
FOREIGN = {'up', 'ALERTS', 'kube_pod_info'}
# What a rule's or panel's histogram is read by.
PARTS = re.compile(r'_(bucket|sum|count)$')
KEYWORDS = {'and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan'}


def rule_files():
    """Rules as Prometheus reads them, by the name of their file: the spec of each PrometheusRule."""
    return {path.name: yaml.safe_load(path.read_text(encoding='utf-8'))['spec'] for path in sorted((COMPONENT / 'rules').glob('*.yaml'))}


def rules():
    return [rule for spec in rule_files().values() for group in spec['groups'] for rule in group['rules']]


def dashboards():
    return {path.name: json.loads(path.read_text(encoding='utf-8')) for path in sorted((COMPONENT / 'dashboards').glob('*.json'))}


def document(name):
    return (REPO / 'docs' / name).read_text(encoding='utf-8')


def documented():
    """Metrics in the tables of docs/reference/metrics.md, and the drivers' RDMA counters that docs/reference/alerts.md names: name, type."""
    tables = re.findall(r'^\| `([a-z][a-z0-9_]*)` \| (gauge|counter|histogram) \|', document('reference/metrics.md'), re.M)
    return dict(tables) | {name: 'counter' for name in re.findall(r'`(railhead_rdma_\w+_total)`', document('reference/alerts.md'))}


def names_in(expression):
    """Of the metrics that a PromQL expression reads."""
    text = re.sub(r'"(\\.|[^"\\])*"', '', expression)
    text = re.sub(r'\{[^}]*\}|\[[^]]*\]', ' ', text)
    text = re.sub(r'\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)', ' ', text)
    text = re.sub(r'\boffset\s+\w+', ' ', text)
    return {name for name in re.findall(r'(?<![\w.:$])([a-zA-Z_:][\w:]*)\b(?!\s*\()', text) if name.lower() not in KEYWORDS}


def unknown(names):
    """Those that nothing provides."""
    known = documented()
    provided = FOREIGN | {rule['record'] for rule in rules() if 'record' in rule}
    return sorted(name for name in names if name not in provided and name not in known
                  and known.get(PARTS.sub('', name)) != 'histogram')
