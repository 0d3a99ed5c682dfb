"""kube_nodes.py - nodes and events for kube_standin.py: what node status uses of core/v1.

Nodes: create and delete (administrator), get, merge patch, strategic merge patch of the status' conditions and of nothing
else; a patch with another metadata.resourceVersion than the node's is a conflict. Events: create, and list (administrator).
railheadd's service account may do what manifests/components/node-conditions gives it: it is read from there.
"""
import json
import os
import re
import uuid

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROLE = f'{HERE}/../../../manifests/components/node-conditions/role.yaml'
MERGE, STRATEGIC = 'application/merge-patch+json', 'application/strategic-merge-patch+json'
PATH = re.compile(r'^/api/v1/(?:(nodes)(?:/([^/]+)(?:/(status))?)?|namespaces/([^/]+)/(events)|(events))$')
VERBS = {'GET': 'get', 'POST': 'create', 'PATCH': 'patch', 'DELETE': 'delete'}


class Refused(Exception):
    def __init__(self, code, reason, message, name=None, kind=None):
        super().__init__(message)
        self.answer = code, reason, message, name, kind


def merged(old, patch):
    """RFC 7386"""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


class Core:
    """Locked by who calls."""

    def __init__(self):
        with open(ROLE, encoding='utf-8') as file:
            role = next(one for one in yaml.safe_load_all(file) if one['kind'] == 'ClusterRole')
        self.allowed = {(resource, verb) for rule in role['rules'] for resource in rule['resources']
                        for verb in rule['verbs'] if rule['apiGroups'] == ['']}
        self.revision = 1
        self.nodes = {}
        self.events = []
        self.namespaces = {'default', 'team'}

    def serve(self, method, path, content_type, body, rights):
        """(status, body), or None where the path is none of ours. `rights`: is railheadd, is an administrator."""
        found = PATH.match(path)
        if not found:
            return None
        nodes, node, status, namespace, _, _ = found.groups()
        resource = 'events' if not nodes else 'nodes/status' if status else 'nodes'
        is_ours, is_admin = rights
        if not is_admin and not (is_ours and (resource, VERBS.get(method)) in self.allowed):
            raise Refused(403, 'Forbidden', f'{resource} is forbidden: User cannot {method.lower()} resource "{resource}"')
        sent = json.loads(body) if body else {}
        if resource == 'events':
            return self.create_event(namespace, sent) if method == 'POST' else (200, {'items': self.events})
        if method == 'POST':
            sent['metadata'].setdefault('uid', str(uuid.uuid4()))
            self.nodes[sent['metadata']['name']] = self.next(sent)
            return 201, sent
        if node not in self.nodes:
            raise Refused(404, 'NotFound', f'nodes "{node}" not found', node, 'nodes')
        if method == 'DELETE':
            return 200, self.nodes.pop(node)
        if method == 'PATCH':
            self.patch(node, status, content_type, sent)
        return 200, self.nodes[node]

    def next(self, item):
        self.revision += 1
        item['metadata']['resourceVersion'] = str(self.revision)
        return item

    def patch(self, name, status, content_type, sent):
        old = self.nodes[name]
        version = sent.get('metadata', {}).get('resourceVersion')
        if version not in (None, old['metadata']['resourceVersion']):
            raise Refused(409, 'Conflict', f'Operation cannot be fulfilled on nodes "{name}": the object has been modified',
                          name, 'nodes')
        if content_type == MERGE and not status:
            new = merged(old, {key: value for key, value in sent.items() if key != 'status'})
        elif content_type == STRATEGIC and status:
            conditions = {one['type']: one for one in old.get('status', {}).get('conditions', [])}
            for one in sent['status']['conditions']:
                conditions[one['type']] = {**conditions.get(one['type'], {}), **one}
            new = {**old, 'status': {**old.get('status', {}), 'conditions': list(conditions.values())}}
        else:
            raise Refused(415, 'UnsupportedMediaType', f'{content_type} is not what is patched here')
        self.nodes[name] = self.next({**new, 'metadata': dict(new['metadata'])})

    def create_event(self, namespace, sent):
        name = sent['metadata']['name']
        if namespace not in self.namespaces:
            raise Refused(404, 'NotFound', f'namespaces "{namespace}" not found', namespace, 'namespaces')
        involved = sent['involvedObject']
        if sent['metadata']['namespace'] != namespace or involved.get('namespace', 'default') != namespace or \
                not re.match(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$', name) or len(sent['message']) > 1024:
            raise Refused(422, 'Invalid', f'Event "{name}" is invalid')
        if any(one['metadata']['name'] == name for one in self.events):
            raise Refused(409, 'AlreadyExists', f'events "{name}" already exists', name, 'events')
        self.events.append(sent)
        return 201, sent
