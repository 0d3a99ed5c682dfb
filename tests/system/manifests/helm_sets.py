"""Sets of values of manifests/helm/railhead, each with what kustomize makes of the same wishes.

A set has examples of the chart, further values, and a kustomization: an overlay of manifests/, or one of base, components and
patches for which the test writes fabric.json (and topology.json) as the values have it (`helm_compare.make_overlay`).
"""
import dataclasses
import json
import pathlib
import re

import yaml

FIRST = '/spec/template/spec/containers/0'
INIT = '/spec/template/spec/initContainers'
TOPOLOGY = {'paths': [{'nic': '0000:43:00.0', 'accelerator': '0000:41:00.0', 'path': 'PIX'}]}
REPO = pathlib.Path(__file__).resolve().parents[3]
RUNBOOKS = 'https://wiki.example/runbooks'
CONTAINERS = [f'{INIT}/0', f'{INIT}/1', f'{INIT}/2', f'{INIT}/3', FIRST]


@dataclasses.dataclass
class Set:
    name: str
    examples: list
    overlay: str = ''                 # an overlay as it is
    values: dict = dataclasses.field(default_factory=dict)
    components: list = dataclasses.field(default_factory=list)
    kustomization: dict = dataclasses.field(default_factory=dict)
    patch: list = dataclasses.field(default_factory=list)   # of the DaemonSet, JSON patches
    files: dict = dataclasses.field(default_factory=dict)
    only_helm: set = dataclasses.field(default_factory=set)   # kinds and names without a counterpart
    is_plain: bool = True             # what references.py expects of the image holds


def replace(path, value):
    return {'op': 'replace', 'path': path, 'value': value}


def add(path, value):
    return {'op': 'add', 'path': path, 'value': value}


def volume(name, path):
    """The DaemonSet's volume with another directory, as a strategic merge patch."""
    return {'patch': '{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: railheadd, namespace: railhead}, spec: {template: '
                     f'{{spec: {{volumes: [{{name: {name}, hostPath: {{path: {path}}}}}]}}}}}}}}'}


def local(name, **data):
    """A ConfigMap for kustomize alone."""
    return {'apiVersion': 'v1', 'kind': 'ConfigMap', 'data': data,
            'metadata': {'name': name, 'annotations': {'config.kubernetes.io/local-config': 'true'}}}


def runbooks():
    """The recipe of components/monitoring/kustomization.yaml."""
    text = (REPO / 'manifests/components/monitoring/kustomization.yaml').read_text(encoding='utf-8')
    recipe = ''.join(line[4:] for line in text.splitlines(True) if line.startswith('#   '))
    return yaml.safe_load(recipe)


def runtimes_list():
    """The recipe of docs/reference/permissions.md."""
    text = (REPO / 'docs/reference/permissions.md').read_text(encoding='utf-8')
    recipe, = re.findall(r'^```yaml\n(.*?)^```$', text, re.M | re.S)
    return yaml.safe_load(recipe)


def network(name, namespace, resource=None):
    annotations = {'annotations': {'k8s.v1.cni.cncf.io/resourceName': resource}} if resource else {}
    return {'apiVersion': 'k8s.cni.cncf.io/v1', 'kind': 'NetworkAttachmentDefinition',
            'metadata': {'name': name, 'namespace': namespace} | annotations,
            'spec': {'config': f'{{"cniVersion": "1.0.0", "name": "{name}", "type": "railhead"}}'}}


def of_examples():
    """Each example of the chart that kustomize has a counterpart of."""
    yield from (Set(name, [name], overlay=name) for name in ('minimal', 'multus'))
    yield Set('soft-roce', ['soft-roce'], components=['networks'])
    yield Set('node-index', ['node-index'], components=['networks', 'node-index'])
    yield Set('chained', ['multus', 'chained'])
    yield Set('multus-per-rail', ['multus', 'multus-per-rail'], components=['networks-per-rail'])
    yield from (Set(name, ['multus', name], components=['networks']) for name in ('late-binding', 'exclusive'))
    more = {'node-status': 'node-conditions', 'labelled': 'node-features', 'monitored': 'monitoring'}
    yield from (Set(name, ['multus', name], components=['networks', component]) for name, component in more.items())
    yield Set('kubelet-root', ['multus', 'kubelet-root'], components=['networks', 'kubelet-root'],
              files={'kubelet.yaml': local('railhead-kubelet', root='/var/lib/k0s/kubelet')}, kustomization={'resources': ['kubelet.yaml']})


def of_directories():
    yield Set('k3s', ['multus'], values={'runtime': 'k3s'}, components=['networks'],
              kustomization={'patches': [volume('cni-bin', '/var/lib/rancher/k3s/data/cni')]})
    yield from (Set(runtime, ['multus'], values={'runtime': runtime}, components=['networks']) for runtime in ('crio', 'rke2'))
    root = '/var/snap/microk8s/common/var/lib/kubelet'
    microk8s = {'resources': ['kubelet.yaml'], 'patches': [volume('cni-bin', '/var/snap/microk8s/current/opt/cni/bin')]}
    yield Set('microk8s', ['multus'], values={'runtime': 'microk8s'}, components=['networks', 'kubelet-root'],
              files={'kubelet.yaml': local('railhead-kubelet', root=root)}, kustomization=microk8s)
    yield Set('microk8s-runtimes-list', ['multus'], values={'runtime': 'microk8s', 'seccomp': 'RuntimeDefault'},
              components=['networks', 'kubelet-root'], files={'kubelet.yaml': local('railhead-kubelet', root=root)},
              kustomization={**microk8s, 'patches': microk8s['patches'] + runtimes_list()['patches']})
    yield Set('explicit-directories', ['multus'], components=['networks'],
              values={'runtime': 'microk8s', 'directories': {'cniBin': '/usr/lib/cni/', 'kubeletRoot': '/var/lib/kubelet', 'cdi': '/var/run/cdi'}},
              kustomization={'patches': [volume('cni-bin', '/usr/lib/cni'), volume('cdi', '/var/run/cdi')]})
    yield Set('openshift', ['multus', 'openshift'], components=['networks'],
              kustomization={'patches': [volume('cni-bin', '/var/lib/cni/bin')]},
              patch=[add(f'{container}/securityContext/seLinuxOptions', {'type': 'spc_t'}) for container in CONTAINERS],
              only_helm={('SecurityContextConstraints', 'railheadd'), ('Role', 'railheadd-scc'), ('RoleBinding', 'railheadd-scc')})


def of_mixtures():
    yield Set('index-status', ['node-index', 'node-status'], components=['networks', 'node-index', 'node-conditions'])
    yield Set('monitored-labelled', ['multus', 'monitored', 'labelled'],
              values={'monitoring': {'rules': {'runbookUrl': RUNBOOKS}}}, components=['networks', 'monitoring', 'node-features'],
              kustomization=runbooks())
    yield Set('runtimes-list', ['minimal'], values={'seccomp': 'RuntimeDefault'}, components=['networks'], kustomization=runtimes_list())
    yield Set('index-of-listed-nodes', ['minimal'], components=['networks', 'node-index'],
              values={'addressIndex': 'kubernetes', 'fabric': {'addresses': {'index': {'from': 'kubernetes'}}}})
    yield Set('topology', ['multus'], values={'topology': TOPOLOGY}, components=['networks'])
    yield Set('namespaces', ['multus'], components=['networks'],
              values={'networks': [{'namespace': 'default'}, {'namespace': 'team-a', 'kind': 'all', 'resource': 'railhead.io/roce'}]},
              files={'one.yaml': network('roce', 'team-a', 'railhead.io/roce'), 'all.yaml': network('roce-all', 'team-a')},
              kustomization={'resources': ['one.yaml', 'all.yaml']})
    yield Set('mirror', ['minimal'], components=['networks'], is_plain=False,
              values={'global': {'registry': 'mirror.example:5000/gpu/'}, 'image': {
                  'registry': 'other.example', 'repository': 'net/railhead', 'tag': '0.1.0-2', 'pullPolicy': 'Always', 'pullSecrets': ['mirror']}},
              kustomization={'images': [{'name': 'railhead', 'newName': 'mirror.example:5000/gpu/net/railhead', 'newTag': '0.1.0-2'}]},
              patch=[add('/spec/template/spec/imagePullSecrets', [{'name': 'mirror'}])] + [add(f'{c}/imagePullPolicy', 'Always') for c in CONTAINERS])
    amounts = {'requests': {'cpu': '50m', 'memory': '64Mi'}, 'limits': {'memory': '256Mi'}}
    toleration = {'key': 'gpu', 'operator': 'Equal', 'value': 'yes', 'effect': 'NoSchedule'}
    yield Set('tuned', ['minimal'], components=['networks'],
              values={'updateStrategy': {'rollingUpdate': {'maxSurge': '20%'}}, 'minReadySeconds': 15, 'resources': {'railheadd': amounts},
                      'tolerations': [toleration], 'nodeSelector': {'railhead.io/nics': None, 'pool': 'gpu'},
                      'priorityClassName': 'system-cluster-critical', 'podLabels': {'team': 'net'}, 'podAnnotations': {'note': '1'},
                      'cniInstall': {'allowDowngrade': True, 'dacOverride': True}, 'extraArgs': ['--log-level=debug'],
                      'monitoring': {'listenAddress': '[::1]', 'port': 9000}},
              patch=[replace('/spec/updateStrategy/rollingUpdate/maxSurge', '20%'), replace('/spec/minReadySeconds', 15),
                     replace(f'{FIRST}/resources', amounts), replace('/spec/template/spec/tolerations', [toleration]),
                     replace('/spec/template/spec/nodeSelector', {'pool': 'gpu'}),
                     replace('/spec/template/spec/priorityClassName', 'system-cluster-critical'),
                     add('/spec/template/metadata/labels/team', 'net'), add('/spec/template/metadata/annotations', {'note': '1'}),
                     replace(f'{INIT}/0/command', ['railctl', 'install', 'cni', '--allow-downgrade', '--config', '/config', '--to', '/host/opt/cni/bin']),
                     add(f'{INIT}/0/securityContext/capabilities/add', ['DAC_OVERRIDE']),
                     replace(f'{FIRST}/args', ['--http-address=[::1]:9000', '--log-level=debug'])])


def of_labels():
    """The chart's own labels, given by the user, too: those of objects of kustomize are normalised away, but for the name."""
    own = ['part-of', 'instance', 'managed-by', 'version', 'name']
    theirs = {'helm.sh/chart': 'theirs', 'team': 'net', **{f'app.kubernetes.io/{key}': 'theirs' for key in own}}
    pods, note, release = {**theirs, 'app.kubernetes.io/name': 'railheadd'}, {'note': 'ours'}, {'release': 'prometheus'}
    monitoring = {kind: {'labels': {**theirs, **release}} for kind in ('podMonitor', 'rules')}
    monitoring['dashboards'] = {'labels': {**theirs, 'grafana_dashboard': 'yes'}}
    patches = [{'target': {'kind': kind}, 'patch': json.dumps({'kind': kind, 'metadata': {'name': 'any', 'labels': release}})}
               for kind in ('PodMonitor', 'PrometheusRule')]
    dashboards = [replace('/metadata/labels/grafana_dashboard', 'yes')]
    yield Set('relabelled', ['node-index', 'node-status', 'monitored'], components=['networks', 'node-index', 'node-conditions', 'monitoring'],
              values={'labels': theirs, 'annotations': note, 'podLabels': pods, 'podAnnotations': note, 'monitoring': monitoring},
              kustomization={'labels': [{'pairs': {key: theirs[key] for key in ('team', 'app.kubernetes.io/name')}}], 'commonAnnotations': note,
                             'patches': [*patches, {'target': {'name': 'railhead-dashboards'}, 'patch': json.dumps(dashboards)}]},
              patch=[replace('/spec/template/metadata/labels', pods)])


def all_sets():
    return [*of_examples(), *of_directories(), *of_mixtures(), *of_labels()]


# Values that the schema or the chart refuses, with a word of what is said. Example `multus` goes before them.
REFUSED = [
    ({'imagee': {}}, 'imagee'),
    ({'image': {'repositry': 'railhead'}}, 'repositry'),
    ({'image': {'digest': 'sha256:0'}}, 'digest'),
    ({'global': {'registery': 'a'}}, 'registery'),
    ({'global': {'registry': 'oci://a.example'}}, 'registry'),
    ({'image': {'registry': 'https://a.example/gpu'}}, 'registry'),
    ({'image': {'registry': '/gpu'}}, 'registry'),
    ({'runtime': 'docker'}, 'runtime'),
    ({'addressIndex': 'etcd'}, 'addressIndex'),
    ({'directories': {'cniBin': 'opt/cni/bin'}}, 'cniBin'),
    ({'directories': {'cdi': '/etc/cdi'}}, 'cdi'),
    ({'networks': ['default']}, 'networks'),
    ({'networks': [{'namespace': 'default', 'kind': 'every'}]}, 'kind'),
    ({'networks': [{'kind': 'all'}]}, 'namespace'),
    ({'minReadySeconds': '60'}, 'minReadySeconds'),
    ({'nodeSelector': {'a': True}}, 'nodeSelector'),
    ({'tolerations': [{'operator': 'Exist'}]}, 'operator'),
    ({'resources': {'railheadd': {'limits': {'memory': '128MB'}}}}, 'memory'),
    ({'updateStrategy': {'rollingUpdate': {'maxSurge': '10'}}}, 'maxSurge'),
    ({'monitoring': {'podMonitor': True}}, 'podMonitor'),
    ({'seccomp': 'Localhost'}, 'seccomp'),
    ({'removalCheck': {'image': 'tools'}}, 'image'),
    ({'fabric': {'rails': [{'name': 'rail0', 'pfs': 0}]}}, 'pfs'),
    ({'fabric': {'rails': [{'name': 'rail0', 'pf': 0, 'vlan': '100'}]}}, 'vlan'),
    ({'fabric': {'polices': {}}}, 'polices'),
    ({'fabric': {'version': 2}}, 'version'),
    ({'topology': {'path': []}}, 'path'),
    # By these the DaemonSet selects its pods, Multus its devices, and Helm its hooks.
    ({'podLabels': {'app.kubernetes.io/name': 'mine'}}, "/podLabels/app.kubernetes.io/name: 'railheadd' was expected"),
    ({'podLabels': {'app.kubernetes.io/name': None}}, "/podLabels/app.kubernetes.io/name: 'railheadd' was expected"),
    ({'annotations': {'k8s.v1.cni.cncf.io/resourceName': 'railhead.io/mine'}}, "'k8s.v1.cni.cncf.io/resourceName'"),
    ({'annotations': {'helm.sh/hook': 'pre-install'}}, "'helm.sh/hook'"),
    ({'labels': {'app.kubernetes.io/version': 1}}, '/labels/app.kubernetes.io/version'),
    # What a schema cannot say: the templates do.
    ({'fabricConfigMap': 'mine'}, 'exclude each other'),
    ({'addressIndex': 'kubernetes'}, 'addresses.index of the fabric says nodes'),
    ({'addressStore': {'type': 'kubernetes'}}, 'set addressIndex in its place'),
    ({'nodeConditions': True}, 'nodeStatus of the fabric says false'),
    ({'networks': [{'namespace': 'a', 'kind': 'per-rail'}]}, 'no pool of one rail'),
    ({'networks': [{'namespace': 'a', 'kind': 'per-rail'}], 'fabric': {'rails': [{'name': 'Rail_A', 'pf': 0}],
                                                                      'pools': [{'resource': 'railhead.io/a', 'rails': ['Rail_A']}]}},
     "roce-Rail_A cannot be an object's name"),
    ({'networks': [{'namespace': 'a'}, {'namespace': 'a'}]}, 'a is there twice'),
    ({'networks': [{'namespace': 'a', 'resource': 'railhead.io/rocket'}]}, 'no pool of the fabric has the resource'),
    ({'monitoring': {'listenAddress': '127.0.0.1', 'podMonitor': {'enabled': True}}}, 'loopback'),
]
# Likewise, without an example.
REFUSED_ALONE = [
    ({}, 'set fabric'),
    ({'fabric': {'version': 1}}, 'rails'),
    ({'fabricConfigMap': 'mine'}, 'set addressIndex'),
    ({'fabricConfigMap': 'mine', 'nodeConditions': False}, 'set addressIndex'),
    ({'fabricConfigMap': 'mine', 'addressIndex': 'nodes'}, 'set nodeConditions'),
    ({'fabricConfigMap': 'mine', 'topology': {'paths': []}}, 'exclude each other'),
]
