"""A chart and a kustomization, rendered, and what the two make differently.

Both sides are normalised by normal() alone; what the chart has and kustomize has not stands in helm_sets.py.
"""
import copy
import json
import pathlib
import shutil
import subprocess

import jsonschema
import yaml

from strict_yaml import load

REPO = pathlib.Path(__file__).resolve().parents[3]
EMBEDDED = ('fabric', 'topology')   # values with a file's content
# Of Helm's side alone, but for part-of, which kustomize gives to the objects of base only.
HELMS_LABELS = {'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by', 'app.kubernetes.io/version', 'helm.sh/chart',
                'app.kubernetes.io/part-of'}


class Problem(Exception):
    pass


def without_null(value):
    """null counts as absent in fabric.json and in objects of Kubernetes."""
    if isinstance(value, dict):
        return {key: without_null(one) for key, one in value.items() if one is not None}
    return [without_null(one) for one in value] if isinstance(value, list) else value


def is_hook(document):
    """Helm makes it for a moment of its own; kustomize has no such moment."""
    return 'helm.sh/hook' in document['metadata'].get('annotations', {})


def is_namespace(document):
    """Helm makes its release's namespace by --create-namespace, without labels: NOTES.txt has them (helm.py)."""
    return document['kind'] == 'Namespace'


def normal(document):
    """An object without the differences that are meant."""
    document = without_null(copy.deepcopy(document))
    metadata = document['metadata']
    metadata['labels'] = {key: value for key, value in metadata.get('labels', {}).items() if key not in HELMS_LABELS}
    annotations = metadata.setdefault('annotations', {})
    if document['kind'] == 'CustomResourceDefinition' and annotations.get('helm.sh/resource-policy') == 'keep':
        del annotations['helm.sh/resource-policy']
    if document['kind'] == 'ConfigMap':
        document['data'] = {key: without_null(json.loads(text)) if key.endswith('.json') else text for key, text in document['data'].items()}
    if document['kind'] == 'NetworkAttachmentDefinition':
        document['spec']['config'] = json.loads(document['spec']['config'])
    if document['kind'] == 'DaemonSet':
        pod = document['spec']['template']['spec']
        pod['volumes'].sort(key=lambda volume: volume['name'])
        for container in pod['containers'] + pod['initContainers']:
            container['volumeMounts'].sort(key=lambda mount: mount['name'])
    return document


def by_name(documents):
    named = {}
    for document in map(normal, documents):
        key = document['kind'], document['metadata'].get('namespace', ''), document['metadata']['name']
        if key in named:
            raise Problem(f'{" ".join(key)} is there twice')
        named[key] = document
    return named


def fabric_and_daemonset(documents):
    return (next(d for d in documents if d['kind'] == 'ConfigMap' and 'fabric.json' in d['data']),
            next(d for d in documents if d['kind'] == 'DaemonSet'))


def differences(left, right, path=''):
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys(), key=str):
            if left.get(key, ...) != right.get(key, ...):
                yield from differences(left.get(key, 'absent'), right.get(key, 'absent'), f'{path}/{key}')
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for number, (one, other) in enumerate(zip(left, right)):
            if one != other:
                yield from differences(one, other, f'{path}/{number}')
    else:
        yield f'{path}: chart {json.dumps(left)[:200]}, kustomize {json.dumps(right)[:200]}'


class Chart:
    """A chart, rendered with values."""

    def __init__(self, directory, render, work):
        self.directory, self.render, self.work = directory, render, work
        schema = json.loads((directory / 'values.schema.json').read_text(encoding='utf-8'))
        jsonschema.Draft7Validator.check_schema(schema)
        self.validator = jsonschema.Draft7Validator(schema)

    def run(self, *arguments):
        done = subprocess.run([self.render, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Problem(done.stderr.strip())
        return done.stdout

    def files(self, examples, values):
        own = self.work / 'values.yaml'
        own.write_text(json.dumps(values), encoding='utf-8')
        return [self.directory, *(self.directory / f'examples/{name}.yaml' for name in examples), own]

    def values(self, examples, values):
        """As the templates see them, checked by the schema."""
        merged = json.loads(self.run('-values', *self.files(examples, values)))
        found = [f'/{"/".join(map(str, error.absolute_path))}: {error.message[:300]}' for error in self.validator.iter_errors(merged)]
        if found:
            raise Problem('\n'.join(found))
        return merged

    def objects(self, examples, values, namespace='railhead'):
        self.values(examples, values)
        text = self.run('-namespace', namespace, *self.files(examples, values))
        try:
            return load(text)
        except yaml.MarkedYAMLError as error:
            lines = text.splitlines()[:error.problem_mark.line + 1]
            source = next(line for line in reversed(lines) if line.startswith('# Source: '))
            raise Problem(f'{source.removeprefix("# Source: ")}: {error.problem}: {lines[-1].strip()}') from error

    def notes(self, examples, values, namespace='railhead'):
        return self.run('-notes', '-namespace', namespace, *self.files(examples, values))


class Kustomize:
    """A copy of manifests/, to which overlays are added."""

    def __init__(self, tools, work):
        self.program, self.manifests, self.cache = f'{tools}/bin/kustomize', work / 'manifests', {}
        shutil.copytree(REPO / 'manifests', self.manifests, ignore=shutil.ignore_patterns('helm', 'image', 'package'))

    def objects(self, one, values):
        if one.name not in self.cache:
            folder = self.manifests / 'overlays' / (one.overlay or f'of-{one.name}')
            if not one.overlay:
                make_overlay(one, values, folder)
            done = subprocess.run([self.program, 'build', folder], capture_output=True, text=True, check=False)
            if done.returncode:
                raise Problem(done.stderr.strip())
            self.cache[one.name] = load(done.stdout)
        return self.cache[one.name]


def make_overlay(one, values, folder):
    """What kustomize's users write themselves (manifests/README.md)."""
    folder.mkdir()
    given = copy.deepcopy(one.kustomization)
    files = {f'{key}.json': without_null(values[key]) for key in EMBEDDED if key in values}
    for name, content in {**files, **one.files}.items():
        (folder / name).write_text(json.dumps(content, indent=1), encoding='utf-8')
    if one.patch:
        given.setdefault('patches', []).append({'target': {'kind': 'DaemonSet', 'name': 'railheadd'}, 'patch': json.dumps(one.patch)})
    given['resources'] = ['../../base', *given.get('resources', [])]
    given['components'] = [f'../../components/{name}' for name in one.components]
    given['configMapGenerator'] = [*given.get('configMapGenerator', []), {
        'name': 'railhead-fabric', 'namespace': 'railhead', 'behavior': 'replace', 'files': sorted(files),
        'options': {'disableNameSuffixHash': True}}]
    (folder / 'kustomization.yaml').write_text(json.dumps(given, indent=1), encoding='utf-8')



def drift(chart, kustomize, one):
    """What the chart and kustomize make differently of one set."""
    made = by_name(d for d in chart.objects(one.examples, one.values) if not is_hook(d))
    wanted = by_name(d for d in kustomize.objects(one, chart.values(one.examples, one.values)) if not is_namespace(d))
    made = {key: document for key, document in made.items() if (key[0], key[2]) not in one.only_helm}
    for key in sorted(made.keys() | wanted.keys()):
        if key not in wanted:
            yield f'{" ".join(key)}: only the chart makes it'
        elif key not in made:
            yield f'{" ".join(key)}: only kustomize makes it'
        else:
            yield from (f'{" ".join(key)}: {found}' for found in differences(made[key], wanted[key]))
