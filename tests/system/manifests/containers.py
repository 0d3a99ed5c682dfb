#!/usr/bin/python3
"""containers.py RENDERING NODE - the DaemonSet's containers as kubelet would start them, for a script: JSON.

[{"name", "init", "command": [...], "env": {...}, "seccomp": null, "add": "NET_ADMIN,...", "mounts": [{"from", "to", "readOnly", "followsHost"}],
  "probes": {"startupProbe": [WORD, ...]}}]; "from" is a path of the host, or "configMap:NAME", "secret:NAME", "emptyDir:VOLUME".
"""
import json
import re
import sys

import yaml


def variables(container, node):
    fields = {'spec.nodeName': node, 'status.hostIP': '192.0.2.7'}
    return {one['name']: one.get('value') or fields[one['valueFrom']['fieldRef']['fieldPath']] for one in container.get('env', [])}


def started(container, init, volumes, node):
    env = variables(container, node)
    words = [re.sub(r'\$\((\w+)\)', lambda name: env[name[1]], word) for word in container['command'] + container.get('args', [])]
    probes = {probe: container[probe]['exec']['command'] for probe in ('startupProbe', 'livenessProbe', 'readinessProbe') if probe in container}
    return {
        'name': container['name'], 'init': init, 'command': words, 'env': env,
        'seccomp': container['securityContext']['seccompProfile'].get('localhostProfile'),
        'add': ','.join(container['securityContext']['capabilities'].get('add', [])),
        'mounts': [{'from': volumes[mount['name']], 'to': mount['mountPath'], 'readOnly': mount.get('readOnly', False),
                    'followsHost': mount.get('mountPropagation') == 'HostToContainer'}
                   for mount in container['volumeMounts']],
        'probes': probes}


def source_of(volume):
    if 'hostPath' in volume:
        return volume['hostPath']['path']
    if 'emptyDir' in volume:
        return f'emptyDir:{volume["name"]}'
    return f'secret:{volume["secret"]["secretName"]}' if 'secret' in volume else f'configMap:{volume["configMap"]["name"]}'


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        daemonset, = (one for one in yaml.safe_load_all(file) if one['kind'] == 'DaemonSet')
    pod = daemonset['spec']['template']['spec']
    volumes = {volume['name']: source_of(volume) for volume in pod['volumes']}
    print(json.dumps([started(container, init, volumes, sys.argv[2]) for init, containers in
                      ((True, pod['initContainers']), (False, pod['containers'])) for container in containers]))


main()
