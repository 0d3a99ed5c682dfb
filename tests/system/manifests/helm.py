#!/usr/bin/python3 -B
"""helm.py - the chart manifests/helm/railhead makes the same objects as kustomize, and its values are checked as they should.

usage: helm.py --render HELM_RENDER --bin DIR [--write]
HELM_RENDER: the program of helm_render/main.go. DIR: with railctl.
--write: the schema takes over what railctl prints of fabric.json and topology.json, and docs/reference/helm-values.md is made.
exit status: 0; 1 with a line for each problem on stderr.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

import foreign
import helm_labels
import helm_pages
import helm_reference
from helm_compare import EMBEDDED, REPO, Chart, Kustomize, Problem, differences, drift, fabric_and_daemonset, is_hook
from helm_sets import REFUSED, REFUSED_ALONE, all_sets
from models import Models
from references import Rendering
from strict_yaml import LOADER, load

CHART = REPO / 'manifests/helm/railhead'
PAGE = REPO / 'docs/reference/helm-values.md'


def of_types(models, documents):
    for document in documents:
        found = foreign.problems(models, document)
        found = models.problems(document) if found is None else found
        yield from (f'{document.get("kind")} {document["metadata"].get("name")}: {one}' for one in found)


def of_architecture(documents):
    """The images are of several: where a node of one was asked for, nothing would start in a cluster of another one."""
    return (f'{d["kind"]} {d["metadata"]["name"]}: asks for an architecture' for d in documents if 'kubernetes.io/arch' in json.dumps(d))


# ---- the schema and its page ---------------------------------------------------------------
def printed(railctl, name):
    schema = json.loads(subprocess.run([railctl, 'config', 'schema', name], capture_output=True, text=True, check=True).stdout)
    schema.pop('$schema')       # it stands at the head of the whole
    return schema


def of_schema(schema, railctl):
    for name in EMBEDDED:
        if json.dumps(schema['definitions'][name]) != json.dumps(printed(railctl, name)):
            yield f'values.schema.json: definitions/{name} is not what `railctl config schema {name}` prints; --write takes it over'
    own = {**schema, 'definitions': {key: part for key, part in schema['definitions'].items() if key not in EMBEDDED}}
    yield from open_objects(own)


def open_objects(part, path=''):
    """Objects in which a mistyped key would pass."""
    if isinstance(part, dict):
        if part.get('type') == 'object' and part.get('additionalProperties', True) in (True, {}):
            yield f'values.schema.json: {path} takes any key'
        for key, below in part.items():
            yield from open_objects(below, f'{path}/{key}')
    elif isinstance(part, list):
        for number, below in enumerate(part):
            yield from open_objects(below, f'{path}/{number}')


def keys_of(schema, part, values, path=''):
    """Keys that only the schema or only values.yaml has."""
    _, part = helm_reference.resolved(schema, part)
    if 'properties' not in part or not isinstance(values, dict):
        return
    for key in part['properties'].keys() | values.keys():
        where = f'{path}.{key}'.lstrip('.')
        if key not in part['properties']:
            yield f'values.yaml: {where} is not in the schema'
        elif key in values:
            yield from keys_of(schema, part['properties'][key], values[key], where)
        elif where not in EMBEDDED and not where.startswith('resources.'):
            yield f'values.yaml: {where} has no default'


def write(schema, railctl):
    for name in EMBEDDED:
        schema['definitions'][name] = printed(railctl, name)
    (CHART / 'values.schema.json').write_text(json.dumps(schema, indent=2) + '\n', encoding='utf-8')


def of_page(schema, is_written):
    text = (CHART / 'values.yaml').read_text(encoding='utf-8')
    values = yaml.load(text, LOADER)
    yield from keys_of(schema, schema, values)
    yield from (f'values.yaml: {key} has no comment' for key in helm_reference.without_text(schema, values, helm_reference.comments(text)))
    page = helm_reference.page(schema, values, text)
    if is_written:
        PAGE.write_text(page, encoding='utf-8')
    if not PAGE.is_file() or PAGE.read_text(encoding='utf-8') != page:
        yield f'{PAGE.relative_to(REPO)} is not what values.yaml and the schema say; --write makes it'


# ---- single properties ------------------------------------------------------------------------
def of_rollout(chart):
    """A changed fabric changes the ConfigMap's data alone. The DaemonSet stays as it is, so that no pod restarts."""
    first, daemonset = fabric_and_daemonset(chart.objects(['minimal'], {}))
    # Optional: pods start before there is a fabric.
    wanted = {'name': 'fabric', 'configMap': {'name': 'railhead-fabric', 'optional': True}}
    if daemonset['spec']['template']['spec']['volumes'][0] != wanted:
        yield f'the DaemonSet mounts {daemonset["spec"]["template"]["spec"]["volumes"][0]}'
    for values in ({'fabric': {'addresses': {'reuseDelaySeconds': 901}}}, {'fabric': {'rails': [{'name': 'rail9', 'pf': 9}]}},
                   {'topology': {'paths': []}}):
        changed, same = fabric_and_daemonset(chart.objects(['minimal'], values))
        if changed['metadata'] != first['metadata'] or changed['data'] == first['data']:
            yield f'{values}: the ConfigMap {changed["metadata"]["name"]} is not the former one with other data'
        yield from (f'{values}: the DaemonSet changes: {found}' for found in differences(same, daemonset))


def of_existing_fabric(chart):
    values = {'fabricConfigMap': 'my-fabric', 'addressIndex': 'kubernetes', 'nodeConditions': True,
              'networks': [{'namespace': 'team-a', 'kind': 'per-rail', 'rails': ['rail0', 'rail1']}]}
    documents = chart.objects([], values)
    kinds = [d['kind'] for d in documents]
    volumes = next(d for d in documents if d['kind'] == 'DaemonSet')['spec']['template']['spec']['volumes']
    maps = [d['metadata']['name'] for d in documents if d['kind'] == 'ConfigMap']
    if 'railhead-fabric' in maps or kinds.count('CustomResourceDefinition') != 1 or volumes[0]['configMap']['name'] != 'my-fabric':
        yield f'fabricConfigMap: {sorted(kinds)}, {volumes[0]}'
    kept = [d for d in documents if d['metadata'].get('annotations', {}).get('helm.sh/resource-policy') == 'keep']
    if [d['kind'] for d in kept] != ['CustomResourceDefinition']:
        yield f'helm uninstall keeps {[d["metadata"]["name"] for d in kept]}'
    networks = {d['metadata']['name']: d['metadata'].get('annotations', {}).get('k8s.v1.cni.cncf.io/resourceName')
                for d in documents if d['kind'] == 'NetworkAttachmentDefinition'}
    if networks != {'roce-all': None, 'roce-rail0': 'railhead.io/rail0', 'roce-rail1': 'railhead.io/rail1'}:
        yield f'fabricConfigMap: networks {networks}'


def leaves(value, path=''):
    if isinstance(value, (dict, list)):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(below, f'{path}/{key}')
    else:
        yield path, value


def of_namespace(chart):
    """Nothing points to the default namespace when the release is elsewhere, and nothing else has changed with it."""
    everything = {'addressIndex': 'auto', 'labels': {'team': 'net'}, 'annotations': {'note': 'ours'}}
    examples, other = ['node-index', 'node-status', 'monitored', 'openshift'], 'gpu-net'
    changed = 0
    for ours, document in zip(chart.objects(examples, everything), chart.objects(examples, everything, other), strict=True):
        where = f'{document["kind"]} {document["metadata"]["name"]}'
        there = dict(leaves(document))
        for path, value in leaves(ours):
            if re.search(r'/namespace$|/matchNames/', path) and value == 'railhead':
                wanted = other
            else:
                wanted = value.replace('serviceaccount:railhead:', f'serviceaccount:{other}:') if isinstance(value, str) else value
            changed += wanted != value
            if there.pop(path, None) != wanted:
                yield f'{where}: {path} is not {wanted} in namespace {other}'
        yield from (f'{where}: {path} is there in namespace {other} only' for path in there)
        if document['metadata'].get('labels', {}).get('team') != 'net' or document['metadata'].get('annotations', {}).get('note') != 'ours':
            yield f'{where} lacks the further labels or annotations'
    if changed < 10:
        yield f'only {changed} values follow the namespace of the release'
    namespace = load((REPO / 'manifests/base/namespace.yaml').read_text(encoding='utf-8'))[0]['metadata']
    labelled = re.search(r'kubectl label namespace (\S+) --overwrite ((?:.*\\\n)*.*)', chart.notes(['minimal'], {}))
    given = dict(one.split('=') for one in labelled[2].replace('\\\n', ' ').split()) if labelled else {}
    if given != namespace['labels'] or labelled[1] != namespace['name']:
        yield f'NOTES.txt does not give the labels of base/namespace.yaml: {labelled and labelled[0]}'


def of_monitoring(chart):
    labels, url = {'release': 'prometheus'}, 'https://wiki.example/runbooks'
    documents = chart.objects(['multus', 'monitored'], {'monitoring': {
        'port': 9000, 'listenAddress': '[$(POD_IP)]', 'podMonitor': {'labels': labels}, 'rules': {'labels': labels, 'runbookUrl': url},
        'dashboards': {'labels': {'grafana_dashboard': None, 'dashboards': 'yes'}}}})
    monitor = next(d for d in documents if d['kind'] == 'PodMonitor')
    targets = [r.get('replacement') for e in monitor['spec']['podMetricsEndpoints'] for r in e['relabelings'] if r.get('targetLabel') == '__address__']
    if monitor['metadata']['labels'].get('release') != 'prometheus' or targets != ['$1:9000', '[$1]:9000'] * 2:
        yield f'PodMonitor: {monitor["metadata"]["labels"]}, {targets}'
    rules = [d for d in documents if d['kind'] == 'PrometheusRule']
    alerts = [r for d in rules for g in d['spec']['groups'] for r in g['rules'] if 'alert' in r]
    if {d['metadata']['labels'].get('release') for d in rules} != {'prometheus'} or not alerts or \
            not all(alert['annotations']['runbook_url'].startswith(url + '#') for alert in alerts):
        yield 'PrometheusRules lack the label or the URL'
    dashboards = next(d for d in documents if d['metadata']['name'] == 'railhead-dashboards')['metadata']['labels']
    if dashboards.get('dashboards') != 'yes' or 'grafana_dashboard' in dashboards:
        yield f'dashboards: {dashboards}'
    container = next(d for d in documents if d['kind'] == 'DaemonSet')['spec']['template']['spec']['containers'][0]
    if container['args'] != ['--http-address=[$(POD_IP)]:9000']:
        yield f'railheadd: {container["args"]}'


def of_images(chart, version):
    """The chart is of this version, its list for mirrors has all images, and each has a digest when it is given."""
    listed = yaml.load((chart.directory / 'Chart.yaml').read_text(encoding='utf-8'), LOADER)
    if (listed['version'], listed['appVersion']) != (version, version):
        yield f'Chart.yaml: not of version {version}'
    listed = {one['image'] for one in yaml.load(listed['annotations']['artifacthub.io/images'], LOADER)}
    made = images_of(chart.objects(['multus'], {}))
    if made | set(re.findall(r'image: (\S+)', chart.notes(['multus'], {}))) != listed:
        yield f'Chart.yaml: the images are {made} and that of NOTES.txt, not {listed}'
    digest = 'sha256:' + '0' * 64
    if images_of(chart.objects(['multus'], {'image': {'digest': digest, 'registry': 'a.example'}})) != {f'a.example/{one}@{digest}' for one in made}:
        yield f'image.digest: not {digest} of {made}'
    if 'image: a.example/b/railhead-tools:' not in chart.notes(['multus'], {'global': {'registry': 'a.example/b/'}}):
        yield 'NOTES.txt: the first pod does not have the image of global.registry'


def images_of(documents):
    return {container['image'] for d in documents if d['kind'] in ('DaemonSet', 'Job')
            for container in d['spec']['template']['spec'].get('initContainers', []) + d['spec']['template']['spec']['containers']}


def of_removal(chart):
    """The check before `helm uninstall`: in the release's image, with the resources of the fabric. unit.install.removal has what it finds."""
    existing = {'image': {'registry': 'a.example'}, 'fabricConfigMap': 'mine', 'addressIndex': 'nodes', 'nodeConditions': False}
    check = ['railctl', 'install', 'check-removal', '--fabric=/config/fabric.json']
    for examples, values, fabric in ((['multus'], {}, 'railhead-fabric'), ([], existing, 'mine')):
        documents = chart.objects(examples, values)
        hooks = {d['kind']: d for d in documents if is_hook(d)}
        if sorted(hooks) != ['ClusterRole', 'ClusterRoleBinding', 'Job', 'ServiceAccount']:
            yield f'removalCheck: {sorted(hooks)}'
            return
        if hooks['ClusterRole']['rules'] != [{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['list']}]:
            yield f'removalCheck: may {hooks["ClusterRole"]["rules"]}'
        pod = hooks['Job']['spec']['template']['spec']
        names = {pod['serviceAccountName'], *(hooks[kind]['metadata']['name'] for kind in hooks), hooks['ClusterRoleBinding']['roleRef']['name'],
                 *(subject['name'] for subject in hooks['ClusterRoleBinding']['subjects'])}
        if names != {'railhead-removal-check'} or not pod['automountServiceAccountToken']:
            yield f'removalCheck: its pod has not the rights of its account: {names}'
        container = pod['containers'][0]
        daemon = next(d for d in documents if d['kind'] == 'DaemonSet')['spec']['template']['spec']['containers'][0]
        if (container['command'], container['image']) != (check, daemon['image']) or container.get('args') or container.get('env'):
            yield f'removalCheck: {container}'
        mounts = {mount['mountPath']: volume.get('configMap') for volume in pod['volumes'] for mount in container['volumeMounts']
                  if mount['name'] == volume['name']}
        if mounts != {'/config': {'name': fabric, 'optional': True}}:
            yield f'removalCheck: its fabric is not {fabric}: {mounts}'
    if any(map(is_hook, chart.objects(['multus'], {'removalCheck': {'enabled': False}}))):
        yield 'removalCheck: is made although it is not enabled'


def of_admission(chart):
    """The policy permits the chart's own networks, whatever its rails are called, and none that are called otherwise."""
    rails = ['gpu-a', 'storage.1', 'rail0']
    fabric = {'rails': [{'name': name, 'pf': number} for number, name in enumerate(rails)],
              'pools': [{'resource': f'railhead.io/{name}', 'rails': [name]} for name in rails]}
    existing = {'fabricConfigMap': 'mine', 'addressIndex': 'nodes', 'nodeConditions': False}
    named = [{'namespace': 'team-a', 'kind': 'per-rail', 'rails': rails}]
    for examples, values in ((['multus'], {'fabric': fabric, 'networks': [{'namespace': 'default', 'kind': 'per-rail'}]}), (['multus'], {}),
                             ([], {**existing, 'networks': named})):
        documents = chart.objects(examples, values)
        policy = next(d for d in documents if d['kind'] == 'ValidatingAdmissionPolicy' and d['metadata']['name'] == 'railhead-networks')
        permitted = re.search(r"matches\('(.*)'\)", policy['spec']['validations'][0]['expression'])[1].replace('\\\\', '\\')
        networks = [d['spec']['config'] for d in documents if d['kind'] == 'NetworkAttachmentDefinition']
        yield from (f'the policy railhead-networks refuses {one}' for one in networks if not re.search(permitted, one))
        others = [f'{{"cniVersion": "1.0.0", "name": "{name}", "type": "railhead"}}' for name in ('mine', 'roces', 'roce-', 'roce-a-', 'roce-A', 'a-roce')]
        yield from (f'the policy railhead-networks permits {one}' for one in others if re.search(permitted, one))


def of_network_types(chart):
    """The list of types and what follows from it are values."""
    for types, actions, allowed in (({}, ['Warn'], 'bridge'), ({'refuse': True, 'allowed': ['railhead', 'macvlan']}, ['Deny'], 'macvlan')):
        documents = {(d['kind'], d['metadata']['name']): d for d in chart.objects(['multus'], {'networkTypes': types})}
        binding = documents['ValidatingAdmissionPolicyBinding', 'railhead-network-types']['spec']
        listed = documents['ConfigMap', 'railhead-network-types']
        if binding['validationActions'] != actions or binding['paramRef']['namespace'] != listed['metadata']['namespace']:
            yield f'networkTypes {types}: {binding}'
        if allowed not in listed['data']['allowed'].split() or ('bridge' in listed['data']['allowed'].split()) != (allowed == 'bridge'):
            yield f'networkTypes {types}: {listed["data"]}'


def of_openshift(chart):
    """A volume of a kind, or a seccomp profile, that the SecurityContextConstraints do not name keeps every pod from being made."""
    for seccomp in ('railhead', 'RuntimeDefault'):
        made = {d['kind']: d for d in chart.objects(['node-index', 'openshift'], {'seccomp': seccomp})}
        pod, constraints = made['DaemonSet']['spec']['template']['spec'], made['SecurityContextConstraints']
        kinds = {kind for volume in pod['volumes'] for kind in volume if kind != 'name'}
        if set(constraints['volumes']) != kinds:
            yield f'SecurityContextConstraints: volumes are not those of the DaemonSet: {sorted(kinds)}'
        profiles = [container['securityContext']['seccompProfile'] for container in pod['initContainers'] + pod['containers']]
        names = {f'localhost/{one["localhostProfile"]}' if one['type'] == 'Localhost' else 'runtime/default' for one in profiles}
        if set(constraints['seccompProfiles']) != names:
            yield f'SecurityContextConstraints: seccomp {seccomp}: profiles are not those of the DaemonSet: {sorted(names)}'


def of_refusals(chart):
    for examples, (values, word) in [(['multus'], one) for one in REFUSED] + [([], one) for one in REFUSED_ALONE]:
        try:
            chart.objects(examples, values)
        except Problem as problem:
            if word not in str(problem):
                yield f'values {values}: no "{word}" in {problem}'
        else:
            yield f'values {values} are taken'


# ---- errors in the chart itself --------------------------------------------------------------------
PLANTED = [    # set, file, what is replaced, by what, a word of what is said
    ('multus', 'templates/daemonset.yaml', 'hostPID: true', 'hostPID: false', '/spec/template/spec/hostPID'),
    ('multus', 'templates/daemonset.yaml', 'mountPath: /run/cdi }', 'mountPath: /run/cdi, readOnly: true }', 'readOnly'),
    ('multus', 'templates/daemonset.yaml', 'add: [NET_ADMIN, NET_RAW, SYS_ADMIN]', 'add: [NET_ADMIN, SYS_ADMIN]', 'capabilities'),
    ('multus', 'templates/daemonset.yaml', '--keep-valid, ', '', '/command'),
    ('multus', 'templates/daemonset.yaml', ', "--follow-config=/config"', '', '/command'),
    ('multus', 'templates/_helpers.tpl', '  railhead-fabric\n', '  railhead-fabric-{{ .Values.fabric | toJson | sha256sum | trunc 10 }}\n', 'only the chart'),
    ('k3s', 'templates/_helpers.tpl', '"/var/lib/rancher/k3s/data/cni"', '"/opt/cni/bin"', '/hostPath/path'),
    ('openshift', 'templates/_helpers.tpl', '"/var/lib/cni/bin"', '"/opt/cni/bin"', '/hostPath/path'),
    ('multus', 'templates/daemonset.yaml', 'railhead/railheadd.json', 'railheadd.json', 'localhostProfile'),
    ('multus', 'values.yaml', 'seccomp: railhead', 'seccomp: RuntimeDefault', 'initContainers'),
    ('node-index', 'templates/node-index.yaml', 'role.yaml', 'none.yaml', 'lacks files/node-index/none.yaml'),
    ('node-status', 'templates/node-conditions.yaml', 'files/node-conditions/role.yaml', 'files/node-index/role.yaml', 'only kustomize'),
    ('multus', 'templates/networks.yaml', '"roce-all" ""', '"roce-every" ""', 'only the chart'),
    ('multus', 'templates/fabric.yaml', 'fabricData" .', 'fabricDatum" .', 'fabricDatum'),
    ('multus', 'examples/multus.yaml', '"mtu": 4200', '"mtu": 9000', 'fabric.json'),
    ('multus', 'examples/multus.yaml', '"mtu": 4200', '"mut": 4200', 'mut'),
    ('relabelled', 'templates/_helpers.tpl', '$own .root.Values.labels .given) | nindent 2 }}', '$own) | nindent 2 }}\n  {{- toYaml .root.Values.labels | nindent 2 }}',
     'is there twice in one map'),
    ('relabelled', 'templates/_helpers.tpl', '(list .labels $own .root.Values.labels', '(list .root.Values.labels .labels $own',
     '/metadata/labels/app.kubernetes.io/name'),
    ('multus', 'values.yaml', 'minReadySeconds: 5', 'minReadySecond: 5', 'minReadySecond'),
]


def of_planted(chart, kustomize, sets):
    for name, file, old, new, word in PLANTED:
        with tempfile.TemporaryDirectory(dir=chart.work) as folder:
            directory = pathlib.Path(folder) / 'chart'
            shutil.copytree(chart.directory, directory)
            text = (directory / file).read_text(encoding='utf-8')
            if old not in text:
                yield f'planted: {file} has no "{old}"'
                continue
            (directory / file).write_text(text.replace(old, new), encoding='utf-8')
            try:
                found = '\n'.join(drift(Chart(directory, chart.render, chart.work), kustomize, sets[name]))
            except Problem as problem:
                found = str(problem)
            if word not in found:
                yield f'planted: {file}: "{new}" is not found: no "{word}" in {found or "nothing"}'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--render', required=True)
    parser.add_argument('--bin', required=True)
    parser.add_argument('--write', action='store_true')
    arguments = parser.parse_args()
    tools = subprocess.run([pathlib.Path(__file__).with_name('tools.sh')], check=True, capture_output=True, text=True).stdout.strip()
    railctl = f'{arguments.bin}/railctl'
    version = re.search(r'^project\(railhead VERSION ([^ ]*)', (REPO / 'CMakeLists.txt').read_text(encoding='utf-8'), re.M)[1]
    schema = json.loads((CHART / 'values.schema.json').read_text(encoding='utf-8'))
    if arguments.write:
        write(schema, railctl)
    problems = [*of_schema(schema, railctl), *of_page(schema, arguments.write)]
    sets = {one.name: one for one in all_sets()}
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        chart, kustomize, models = Chart(CHART, arguments.render, work), Kustomize(tools, work), Models(f'{tools}/models')
        for one in sets.values():
            try:
                made = chart.objects(one.examples, one.values)
                found = [*drift(chart, kustomize, one), *of_types(models, made), *of_architecture(made)]
                if one.is_plain and not found:
                    found = Rendering([d for d in made if not is_hook(d) and (d['kind'], d['metadata']['name']) not in one.only_helm], version).problems()
            except Problem as problem:
                found = str(problem).splitlines()
            problems += [f'{one.name}: {problem}' for problem in found]
        if not problems:
            for check in (of_rollout, of_existing_fabric, of_namespace, of_monitoring, of_removal, of_openshift, of_admission, of_network_types, of_refusals):
                problems += check(chart)
            problems += helm_labels.problems(chart)
            problems += helm_pages.problems(chart, railctl)
            problems += of_images(chart, version)
            problems += of_planted(chart, kustomize, sets)
    for problem in problems:
        print(f'helm.py: {problem}', file=sys.stderr)
    if not problems:
        print(f'{len(sets)} sets of values make what kustomize makes; {len(REFUSED) + len(REFUSED_ALONE)} are refused, {len(PLANTED)} planted errors are found')
    sys.exit(1 if problems else 0)


main()
