#!/usr/bin/python3
"""check.py - what is wrong with renderings of manifests/ that needs no program of ours to find out.

usage: check.py --tools DIR --version VERSION --extract DIR --examples DIR NAME=RENDERING.yaml...
Every object is of its type (models.py, foreign.py), every reference leads somewhere (references.py), examples
fit the overlay that they name. The JSON in them is put below --extract, for programs that read it: NAME/fabric.json,
NAME/networks/*.json.
exit status: 0; 1 with a line for each problem on stderr.
"""
import argparse
import json
import pathlib
import re
import sys

import yaml

import foreign
from models import Models
from references import Rendering
from strict_yaml import load


def of_types(models, documents):
    for document in documents:
        problems = foreign.problems(models, document)
        if problems is None:
            problems = models.problems(document)
        name = document.get('metadata', {}).get('name')
        yield from (f'{document.get("kind")} {name}: {problem}' for problem in problems)


def extract(rendering, directory):
    networks = directory / 'networks'
    networks.mkdir(parents=True)
    for config in rendering.of_kind('ConfigMap'):
        # Beside the fabric lies what the same ConfigMap has, as it is mounted.
        folder = directory if 'fabric.json' in config['data'] else directory / config['metadata']['name']
        folder.mkdir(exist_ok=True)
        for key, text in config['data'].items():
            (folder / key).write_text(text, encoding='utf-8')
    for network in rendering.of_kind('NetworkAttachmentDefinition'):
        (networks / f'{network["metadata"]["name"]}.json').write_text(network['spec']['config'], encoding='utf-8')


def of_json(rendering):
    """Before anything else reads it."""
    texts = {f'ConfigMap {c["metadata"]["name"]}: {key}': text for c in rendering.of_kind('ConfigMap')
             for key, text in c['data'].items() if key.endswith('.json')}
    texts.update((f'network {n["metadata"]["name"]}', n['spec']['config']) for n in rendering.of_kind('NetworkAttachmentDefinition'))
    for where, text in texts.items():
        try:
            json.loads(text)
        except ValueError as error:
            yield f'{where}: {error}'


def pods_of(document):
    """Templates of pods in whatever kind."""
    if document['kind'] == 'Pod':
        return [document]
    return [replicas['template'] for key, value in document['spec'].items() if key.endswith('ReplicaSpecs')
            for replicas in value.values()]


def of_example(models, path, renderings):
    try:
        documents = load(path.read_text(encoding='utf-8'))
    except yaml.MarkedYAMLError as error:
        yield f'line {error.problem_mark.line + 1}: {error.problem}'
        return
    if problems := list(of_types(models, documents)):
        yield from problems
        return
    overlay = re.search(r'^# Goes with the values of ([\w-]+)\.yaml', path.read_text(encoding='utf-8'), re.M)
    if not overlay or not (path.parent.parent / 'overlays' / overlay[1]).is_dir():
        yield 'does not say with which values it goes'
        return
    if overlay[1] not in renderings:
        return
    for document in documents:
        yield from renderings[overlay[1]].of_pods(pods_of(document))


def of_namespaces(rendering):
    """Every object is in the namespace that comes with it, which admits the DaemonSet's pods; networks are in those of pods."""
    made = {document['metadata']['name']: document['metadata'].get('labels', {}) for document in rendering.of_kind('Namespace')}
    for document in rendering.documents:
        namespace = document['metadata'].get('namespace')
        if namespace not in (None, *made) and document['kind'] != 'NetworkAttachmentDefinition':
            yield f'{document["kind"]} {document["metadata"]["name"]}: there is no Namespace {namespace}'
        if document['kind'] == 'DaemonSet' and made.get(namespace, {}).get('pod-security.kubernetes.io/enforce') != 'privileged':
            yield f'Namespace {namespace}: Pod Security does not admit DaemonSet {document["metadata"]["name"]}'


def of_rendering(models, rendering, directory):
    found = list(of_types(models, rendering.documents)) or list(of_json(rendering))
    if found:                # what is no object of its kind cannot be looked into
        return found
    extract(rendering, directory)
    return [*of_namespaces(rendering), *rendering.problems()]


def main():
    parser = argparse.ArgumentParser()
    for option in ('--tools', '--version', '--extract', '--examples'):
        parser.add_argument(option, required=True)
    parser.add_argument('renderings', nargs='+')
    arguments = parser.parse_args()
    models, renderings, problems = Models(f'{arguments.tools}/models'), {}, []
    for pair in arguments.renderings:
        name, _, path = pair.partition('=')
        renderings[name] = Rendering(load(pathlib.Path(path).read_text(encoding='utf-8')), arguments.version)
        found = of_rendering(models, renderings[name], pathlib.Path(arguments.extract) / name)
        problems += [f'{name}: {problem}' for problem in found]
    if not problems:
        for path in sorted(pathlib.Path(arguments.examples).glob('*.yaml')):
            problems += [f'{path.name}: {problem}' for problem in of_example(models, path, renderings)]
    for problem in problems:
        print(f'check.py: {problem}', file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
