"""Labels and annotations of the chart's objects: the user's go over the chart's own, but for those by which something is selected."""
from helm_compare import Problem, is_hook
from strict_yaml import load

EXAMPLES = ['node-index', 'node-status', 'monitored', 'openshift']
MONITORING = {'podMonitor': 'PodMonitor', 'rules': 'PrometheusRule', 'dashboards': 'ConfigMap railhead-dashboards'}
GIVEN = ('theirs', '', None)     # null removes a label


def name_of(document):
    return f'{document["kind"]} {document["metadata"]["name"]}'


def own(documents, part):
    return {key for document in documents for key in document['metadata'].get(part, {})}


def lacking(document, part, wanted):
    found = document['metadata'].get(part, {})
    if any(found.get(key) != value or value is None and key in found for key, value in wanted.items()):
        yield f'{part} {wanted} are given, and {name_of(document)} has {found}'


def of_objects(chart, keys):
    for value in GIVEN:
        labels = dict.fromkeys(keys, value)
        for document in chart.objects(EXAMPLES, {'labels': labels}):
            yield from lacking(document, 'labels', labels)
        # Those of monitoring objects win over those of all objects.
        for kind, name in MONITORING.items():
            documents = chart.objects(EXAMPLES, {'labels': dict.fromkeys(keys, 'of all'), 'monitoring': {kind: {'labels': labels}}})
            found = [document for document in documents if name_of(document).startswith(name)]
            for document in found:
                yield from lacking(document, 'labels', labels)
            if not found or any(d['metadata']['labels'][key] != 'of all' for d in documents if d not in found for key in keys):
                yield f'monitoring.{kind}.labels are not those of {name} alone'


def of_annotations(chart, documents):
    """Those by which Helm and Multus know what to do are refused; the others are the user's to change."""
    keys, taken = own(documents, 'annotations'), set()
    for key in sorted(keys):
        for value in GIVEN:
            try:
                for document in chart.objects(EXAMPLES, {'annotations': {key: value}}):
                    yield from lacking(document, 'annotations', {key: value})
                taken.add(key)
            except Problem as problem:
                if repr(key) not in str(problem):
                    yield f'annotations {key}: refused without its name: {problem}'
    if taken != {'helm.sh/resource-policy'}:
        yield f'of the own annotations {sorted(keys)} the schema takes {sorted(taken)}'


def of_pods(chart, documents):
    daemonset = next(d for d in documents if d['kind'] == 'DaemonSet')
    selector, labels = daemonset['spec']['selector']['matchLabels'], daemonset['spec']['template']['metadata']['labels']
    if labels != selector:
        yield f'the pods have {labels}, and only {selector} cannot be changed'
    for key, right in selector.items():
        for value in GIVEN:
            values = {'podLabels': {key: value, 'team': 'net'}, 'podAnnotations': {'note': None}}
            try:
                chart.objects(EXAMPLES, values)
                yield f'podLabels: {key}: {value!r} is taken'
            except Problem as problem:
                if f'/podLabels/{key}: {right!r} was expected' not in str(problem):
                    yield f'podLabels: {key}: {value!r}: {problem}'
            # Without the schema, as with --skip-schema-validation.
            pod = next(d for d in load(chart.run(*chart.files(EXAMPLES, values))) if d['kind'] == 'DaemonSet')['spec']['template']['metadata']
            if pod != {'labels': {**selector, 'team': 'net'}}:
                yield f'{values}: the pods have {pod}'


def problems(chart):
    documents = chart.objects(EXAMPLES, {'monitoring': {'dashboards': {'labels': {'grafana_dashboard': None}}}})
    keys = own(documents, 'labels')
    if not any(map(is_hook, documents)) or len(keys) < 2:
        yield f'there is no hook, or there are no labels: {sorted(keys)}'
    yield from of_objects(chart, keys)
    yield from of_annotations(chart, documents)
    yield from of_pods(chart, documents)
