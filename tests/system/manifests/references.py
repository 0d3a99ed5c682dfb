"""What one object of a rendering says of another one, of a file, a program or an option: whether it is there."""
import json
import re

# Made by others: the cluster, or the user who applies the manifests.
EXTERNAL = {('Secret', 'railhead-probe-keys'): {'probe-keys'},  # optional
            ('ConfigMap', 'kube-root-ca.crt'): {'ca.crt'}}
PAGES = {'/metrics', '/metrics/nics'}
PROGRAMS = {'railhead', 'railhead-ipam', 'railheadd', 'railctl'}
NETWORKS, RESOURCE_NAME = 'k8s.v1.cni.cncf.io/networks', 'k8s.v1.cni.cncf.io/resourceName'
# Volumes with what kubelet has below its --root-dir.
KUBELETS = {'pods': '/pods', 'pod-resources': '/pod-resources', 'plugins-registry': '/plugins_registry', 'seccomp': '/seccomp/railhead'}
# Of these, that which an init container fills before kubelet looks there.
FILLED = {'seccomp'}
POD_ADDRESS = '$(POD_IP)'
TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount'
OF_NODE_STATUS = {'nodes': {'get', 'patch'}, 'nodes/status': {'patch'}, 'events': {'create'}}


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
        for monitor in self.of_kind('PodMonitor'):
            yield from self.of_monitor(monitor)
        yield from self.of_addresses()
        yield from self.of_api()

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
        yield from (f'{where}: {problem}' for problem in [*self.of_kubelet(pod), *self.of_profiles(pod)])
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

    @staticmethod
    def of_profiles(pod):
        """kubelet reads a profile of the node when it makes the container: by then an init container has to have put it there."""
        paths = {volume['name']: volume['hostPath']['path'] for volume in pod.get('volumes', []) if 'hostPath' in volume}
        written = set()
        for container in pod['initContainers'] + pod['containers']:
            profile = container['securityContext']['seccompProfile']
            if profile['type'] == 'Localhost' and profile['localhostProfile'] not in written:
                yield f'container {container["name"]}: nobody installs its profile {profile["localhostProfile"]}'
            if container['command'][:3] == ['railctl', 'install', 'seccomp']:
                to = container['command'][container['command'].index('--to') + 1]
                written |= {f'{paths[mount["name"]].rpartition("/seccomp/")[2]}/railheadd.json'
                            for mount in container['volumeMounts'] if mount['mountPath'] == to}

    @staticmethod
    def of_kubelet(pod):
        """kubelet makes its directories; an empty one in the place of `pods` would look like a node without pods."""
        paths = {volume['name']: volume['hostPath'] for volume in pod.get('volumes', []) if 'hostPath' in volume}
        roots = {}
        for name, folder in KUBELETS.items():
            if name in FILLED and name not in paths:
                continue
            path = paths[name]['path']
            roots[name] = path.removesuffix(folder)
            if not path.startswith('/') or not path.endswith(folder):
                yield f'volume {name}: {path} is no {folder} of kubelet'
            if name not in FILLED and paths[name].get('type') != 'Directory':
                yield f'volume {name}: is made where kubelet has none'
        if len(set(roots.values())) != 1:
            yield f'the volumes {", ".join(roots)} are of several kubelets: {", ".join(sorted(set(roots.values())))}'
        if paths['device-plugins'] != {'path': '/var/lib/kubelet/device-plugins', 'type': 'Directory'}:
            yield 'volume device-plugins: kubelet has it in /var/lib/kubelet/device-plugins only'

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
        socket = [word for word in words if word.startswith('--http-socket=')]
        for probe in ('startupProbe', 'livenessProbe', 'readinessProbe'):
            asked = container.get(probe, {}).get('exec', {}).get('command', [])
            if probe in container and [word for word in asked if word.startswith('--http-socket=')] != socket:
                yield f'{probe} does not ask at {" ".join(socket)}'
        mounted = {mount['mountPath'] for mount in container.get('volumeMounts', [])}
        followed = {word.partition('=')[2] for word in words if word.startswith('--follow-config=')}
        yield from (f'nothing is mounted at {path}' for path in sorted(followed - mounted))
        pod_ip = [v for v in container.get('env', []) if v.get('valueFrom', {}).get('fieldRef', {}).get('fieldPath') == 'status.podIP']
        if address and address.startswith(POD_ADDRESS) and [v['name'] for v in pod_ip] != ['POD_IP']:
            yield 'POD_IP is not the pod\'s address'

    def of_monitor(self, monitor):
        """That it finds the pods, and asks where and for what they answer."""
        where, spec = f'PodMonitor {monitor["metadata"]["name"]}', monitor['spec']
        found = [d for d in self.of_kind('DaemonSet')
                 if spec['selector']['matchLabels'].items() <= d['spec']['template']['metadata']['labels'].items()
                 and d['metadata'].get('namespace') in spec['namespaceSelector']['matchNames']]
        if not found:
            yield f'{where}: selects no pod'
            return
        labels, container = found[0]['spec']['template']['metadata']['labels'], found[0]['spec']['template']['spec']['containers'][0]
        if spec.get('jobLabel') not in labels:
            yield f'{where}: its pods have no label {spec.get("jobLabel")}'
        host, _, port = next((word.partition('=')[2] for word in container['args'] if word.startswith('--http-address=')), '').rpartition(':')
        if host in ('', '127.0.0.1', '[::1]'):
            yield f'{where}: nobody can connect to {container["name"]} from outside'
        for endpoint in spec['podMetricsEndpoints']:
            relabelings = endpoint.get('relabelings', [])
            kept = [r['regex'] for r in relabelings if r.get('action') == 'keep']
            asked = [r['replacement'] for r in relabelings if r.get('targetLabel') == '__address__']
            if kept != [container['name']] or not asked or any(not address.endswith(f':{port}') for address in asked):
                yield f'{where}: {endpoint["path"]} is not asked of {container["name"]} at port {port}'
            if endpoint['path'] not in PAGES:
                yield f'{where}: railheadd has no page {endpoint["path"]}'
            if endpoint['path'] == '/metrics/nics' and not endpoint.get('honorLabels'):
                yield f'{where}: {endpoint["path"]} without honorLabels'

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
            # What node status writes, by component node-conditions, and not a verb more.
            if rule['apiGroups'] == [''] and all(set(rule['verbs']) <= OF_NODE_STATUS.get(name, set()) for name in rule['resources']):
                continue
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
        """A pool that requires an NCCL configuration starts no pod whose NIC has no address, and ours have no other IPAM."""
        fabric = self.fabric()
        rails = {rail['name']: rail for rail in fabric.get('rails', [])}
        mode = fabric.get('ncclConfig', {}).get('mode', 'required')
        for pool in fabric.get('pools', [{}]):
            for name in pool.get('rails', rails) if pool.get('ncclConfig', mode) == 'required' else []:
                if name in rails and 'subnet' not in rails[name]:
                    yield f'fabric: {name} has no subnet, and its pool requires an NCCL configuration'

    def of_api(self):
        mounts = [mount['mountPath'] for daemonset in self.of_kind('DaemonSet')
                  for mount in daemonset['spec']['template']['spec']['containers'][0]['volumeMounts']]
        claims = self.fabric().get('addresses', {}).get('index', {}).get('from') == 'kubernetes'
        node_status = self.fabric().get('nodeStatus', {})
        reports = any(node_status.get(key) for key in ('nodeCondition', 'taint', 'events'))
        if claims != bool(self.of_kind('CustomResourceDefinition')):
            yield 'fabric: addresses.index from kubernetes and components/node-index go together'
        if reports != (('ClusterRole', 'railhead-node-conditions') in self.named):
            yield 'fabric: nodeStatus and components/node-conditions go together'
        if (claims or reports) != (TOKEN in mounts):
            yield 'fabric: a token is mounted where the Kubernetes API is spoken to, and only there'

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
