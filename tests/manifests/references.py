"""What one object of a rendering says of another one, of a file, a program or an option: whether it is there."""
import json
import re

# Made by others: the cluster, or whoever applies the manifests.
EXTERNAL = {('ConfigMap', 'kube-root-ca.crt'): {'ca.crt'},
            ('Secret', 'railhead-etcd'): {'ca.pem', 'client.pem', 'client-key.pem'}}
PROGRAMS = {'railhead', 'railhead-ipam', 'railheadd', 'railctl'}
NETWORKS, RESOURCE_NAME = 'k8s.v1.cni.cncf.io/networks', 'k8s.v1.cni.cncf.io/resourceName'
TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount'


class Rendering:
    def __init__(self, documents, version):
        self.documents, self.version = documents, version
        self.named = {(d['kind'], d['metadata']['name']): d for d in documents}

    def of_kind(self, kind):
        return [document for document in self.documents if document['kind'] == kind]

    def fabric(self):
        for config in self.of_kind('ConfigMap'):
            if 'fabric.json' in config.get('data', {}):
                return json.loads(config['data']['fabric.json'])
        return {}

    def resources(self):
        return {pool['resource'] for pool in self.fabric().get('pools', [{'resource': 'railhead.io/roce'}])}

    def keys(self, kind, name):
        """Of a ConfigMap or a Secret; None: there is none."""
        if (kind, name) in EXTERNAL:
            return EXTERNAL[kind, name]
        found = self.named.get((kind, name))
        return None if found is None else set(found.get('data', {}))

    def problems(self):
        for daemonset in self.of_kind('DaemonSet'):
            yield from self.of_daemonset(daemonset)
        for binding in self.of_kind('ClusterRoleBinding'):
            yield from self.of_binding(binding)
        for role in self.of_kind('ClusterRole'):
            yield from self.of_role(role)
        for network in self.of_kind('NetworkAttachmentDefinition'):
            yield from self.of_network(network)
        yield from self.of_addresses()
        yield from self.of_store()

    # ---- the DaemonSet -----------------------------------------------------------------
    def of_daemonset(self, daemonset):
        where = f'DaemonSet {daemonset["metadata"]["name"]}'
        template = daemonset['spec']['template']
        pod, namespace = template['spec'], daemonset['metadata'].get('namespace')
        labels = daemonset['spec']['selector']['matchLabels']
        if not labels.items() <= template['metadata']['labels'].items():
            yield f'{where}: its selector does not select its pods'
        account = self.named.get(('ServiceAccount', pod.get('serviceAccountName')))
        if account is None or account['metadata'].get('namespace') != namespace:
            yield f'{where}: there is no ServiceAccount {pod.get("serviceAccountName")} in {namespace}'
        yield from (f'{where}: {problem}' for problem in self.of_volumes(pod, namespace))
        for container in pod['initContainers'] + pod['containers']:
            yield from (f'{where}: container {container["name"]}: {problem}' for problem in self.of_container(container))

    def of_volumes(self, pod, namespace):
        volumes = [volume['name'] for volume in pod.get('volumes', [])]
        mounted = set()
        for container in pod['initContainers'] + pod['containers']:
            mounts = container.get('volumeMounts', [])
            mounted |= {mount['name'] for mount in mounts}
            paths = [mount['mountPath'] for mount in mounts]
            yield from (f'{path} is mounted twice' for path in sorted({p for p in paths if paths.count(p) > 1}))
        yield from (f'there is no volume {name}' for name in sorted(mounted - set(volumes)))
        yield from (f'nobody mounts volume {name}' for name in sorted(set(volumes) - mounted))
        for volume in pod.get('volumes', []):
            sources = volume['projected']['sources'] if 'projected' in volume else [volume]
            for kind, name, items in (source for one in sources for source in sources_of(one)):
                keys = self.keys(kind, name)
                if keys is None or (kind, name) not in EXTERNAL and self.named[kind, name]['metadata'].get(
                        'namespace') != namespace:
                    yield f'volume {volume["name"]}: there is no {kind} {name} in {namespace}'
                else:
                    yield from (f'volume {volume["name"]}: {kind} {name} has no key {key}' for key in sorted(items - keys))

    def of_container(self, container):
        if container['image'] != f'railhead:{self.version}':
            yield f'image {container["image"]} is not railhead:{self.version}, as this version is'
        if container['command'][0] not in PROGRAMS:
            yield f'the image has no program {container["command"][0]}'
        context = container['securityContext']
        if context.get('privileged') or context.get('allowPrivilegeEscalation') is not False or \
                context['capabilities'].get('drop') != ['ALL'] or not context.get('readOnlyRootFilesystem'):
            yield 'it may do more than it needs'
        if container.get('ports'):
            yield 'it declares a port, which keeps two of them from one node'
        defined = {variable['name'] for variable in container.get('env', [])}
        words = container['command'] + container.get('args', [])
        yield from (f'there is no variable {name}' for word in words for name in re.findall(r'\$\((\w+)\)', word)
                    if name not in defined)
        address = next((word.partition('=')[2] for word in words if word.startswith('--http-address=')), None)
        for probe in ('startupProbe', 'livenessProbe', 'readinessProbe'):
            get = container.get(probe, {}).get('httpGet')
            if get and f'{get["host"]}:{get["port"]}' != address:
                yield f'{probe} does not ask at {address}'

    # ---- rights ------------------------------------------------------------------------
    def of_binding(self, binding):
        where = f'ClusterRoleBinding {binding["metadata"]["name"]}'
        role = binding['roleRef']
        if (role['kind'], role['name']) not in self.named:
            yield f'{where}: there is no {role["kind"]} {role["name"]}'
        for subject in binding['subjects']:
            found = self.named.get((subject['kind'], subject['name']))
            if found is None or found['metadata'].get('namespace') != subject.get('namespace'):
                yield f'{where}: there is no {subject["kind"]} {subject["name"]} in {subject.get("namespace")}'

    def of_role(self, role):
        defined = {d['spec']['names']['plural']: d for d in self.of_kind('CustomResourceDefinition')}
        for rule in role['rules']:
            if rule['apiGroups'] != ['railhead.io'] or '*' in rule['verbs'] + rule['resources']:
                yield f'ClusterRole {role["metadata"]["name"]}: more than Railhead\'s own'
            yield from (f'ClusterRole {role["metadata"]["name"]}: there is no resource {name}' for name in rule['resources']
                        if name not in defined)

    # ---- the fabric and what goes with it --------------------------------------------------
    def of_network(self, network):
        name = network['metadata']['name']
        config = json.loads(network['spec']['config'])
        if config.get('name') != name:
            yield f'network {name}: its configuration is called {config.get("name")}'
        if config.get('type') not in PROGRAMS:
            yield f'network {name}: there is no plugin {config.get("type")}'
        resource = network['metadata'].get('annotations', {}).get(RESOURCE_NAME)
        if resource and resource not in self.resources():
            yield f'network {name}: no pool of the fabric is {resource}'

    def of_addresses(self):
        """A pool that requires a handoff starts no pod whose NIC has no address, and ours have no other IPAM."""
        fabric = self.fabric()
        rails = {rail['name']: rail for rail in fabric.get('rails', [])}
        mode = fabric.get('handoff', {}).get('mode', 'required')
        for pool in fabric.get('pools', [{}]):
            for name in pool.get('rails', rails) if pool.get('handoff', mode) == 'required' else []:
                if name in rails and 'subnet' not in rails[name]:
                    yield f'fabric: {name} has no subnet, and its pool requires a handoff'

    def of_store(self):
        store = self.fabric().get('addresses', {}).get('store', {})
        mounts = [mount['mountPath'] for daemonset in self.of_kind('DaemonSet')
                  for mount in daemonset['spec']['template']['spec']['containers'][0]['volumeMounts']]
        kubernetes = store.get('type') == 'kubernetes'
        if kubernetes != bool(self.of_kind('CustomResourceDefinition')) or kubernetes != (TOKEN in mounts):
            yield 'fabric: a store of type kubernetes and components/kubernetes-store go together'
        for key, path in store.get('etcd', {}).items():
            directory, _, name = str(path).rpartition('/')
            if key.endswith('File') and (directory not in mounts or name not in EXTERNAL['Secret', 'railhead-etcd']):
                yield f'fabric: nothing mounts {path}'

    # ---- pods that use it ------------------------------------------------------------------
    def of_pods(self, pods):
        """Pod templates of examples, and what of them this rendering has not."""
        for pod in pods:
            wanted = {name: int(number) for container in pod['spec']['containers']
                      for name, number in container.get('resources', {}).get('limits', {}).items() if name.startswith('railhead.io/')}
            yield from (f'no pool of the fabric is {name}' for name in wanted if name not in self.resources())
            listed = pod.get('metadata', {}).get('annotations', {}).get(NETWORKS)
            passed = {}
            for name in listed.split(',') if listed else []:
                network = self.named.get(('NetworkAttachmentDefinition', name))
                if network is None:
                    yield f'there is no network {name}'
                    continue
                resource = network['metadata'].get('annotations', {}).get(RESOURCE_NAME)
                if resource:
                    passed[resource] = passed.get(resource, 0) + 1
                elif not wanted:
                    yield f'network {name} without a device'
            if passed and passed != wanted:
                yield f'requests {wanted}, names networks for {passed}'
            if wanted and not listed:
                yield 'requests devices and names no network'


def sources_of(volume):
    """Kind, name and used keys of what is mounted."""
    for field, kind, name in (('configMap', 'ConfigMap', 'name'), ('secret', 'Secret', 'secretName')):
        if field in volume:
            yield kind, volume[field].get(name) or volume[field].get('name'), {i['key'] for i in volume[field].get('items', [])}
