#!/usr/bin/python3
"""kube_standin.py - as much of the Kubernetes API as nodes' indices and node status use, for tests.

The resource of manifests/components/node-index over HTTPS, with its schema: create, get, list (limit, continue,
resourceVersion), watch, update, delete with preconditions, delete of all. One counter gives every change its resourceVersion,
as the real server does. Who asks is known by bearer tokens (TOKENS: a CSV as kube-apiserver takes it) or by a client
certificate of AUTHORITY; only railheadd's service account and system:masters may do anything. Where the real server answers
a refusal, this one answers the same status, reason and details. Nodes and events: kube_nodes.py. With STATE, a file, the
next stand-in begins with the objects and nodes of this one: each change is there before its answer.

/standin/expire (POST): all continue tokens and versions of before are too old from now on (410).
/standin/answer (POST {"status", "headers", "body", "times"}): what is answered to the next requests with a token.
/standin/lose (POST {"times"}): the next requests that change an object are made, and no answer comes.
/standin/cut (POST): all watches end in the middle of a line.
"""
import argparse
import base64
import csv
import json
import os
import re
import ssl
import sys
import threading
import time
import urllib.parse
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.dont_write_bytecode = True  # the sources are not the place for it
import crd_schema  # noqa: E402
import kube_nodes  # noqa: E402

GROUP = 'railhead.io/v1alpha1'
HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMAS = crd_schema.schemas(f'{HERE}/../../../manifests/components/node-index/crds.yaml')
KINDS = {'nodeindices': 'NodeIndex'}
ALLOWED_USER = 'system:serviceaccount:railhead:railheadd'
NAME = re.compile(r'^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')


class Refusal(Exception):
    """An answer of kind Status."""

    def __init__(self, code, reason, message, name=None, kind=None):
        super().__init__(message)
        details = {'group': 'railhead.io'}
        if name is not None:
            details['name'] = name
        if kind is not None:
            details['kind'] = kind
        self.code = code
        self.status = {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Failure',
                       'message': message, 'reason': reason, 'details': details, 'code': code}


class Store:
    """All objects and their history: what a list of an earlier resourceVersion shows."""

    def __init__(self):
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.cuts = 0
        self.revision = 1
        self.oldest = 1
        self.objects = {kind: {} for kind in KINDS}
        self.history = []  # (revision, resource, type, object)

    def load(self, saved):
        """Objects of an earlier stand-in. Its continue tokens are too old."""
        self.revision = self.oldest = saved['revision']
        self.objects = saved['objects']

    def next(self, resource, event, item):
        self.revision += 1
        item['metadata']['resourceVersion'] = str(self.revision)
        self.history.append((self.revision, resource, event, item))
        self.changed.notify_all()

    def since(self, resource, revision):
        """The events after a revision."""
        return [(number, event, item) for number, kind, event, item in self.history if kind == resource and number > revision]

    def at(self, resource, revision):
        """The objects as of a revision."""
        if revision == self.revision:
            return dict(self.objects[resource])
        seen = {}
        for number, kind, event, item in self.history:
            if kind == resource and number <= revision:
                seen[item['metadata']['name']] = item
                if event == 'DELETED':
                    del seen[item['metadata']['name']]
        return seen

    def find(self, resource, name):
        if name not in self.objects[resource]:
            raise Refusal(404, 'NotFound', f'{resource}.railhead.io "{name}" not found', name, resource)
        return self.objects[resource][name]

    def create(self, resource, sent):
        name = check(resource, sent)
        if sent['metadata'].get('resourceVersion'):
            raise Refusal(500, 'InternalError', 'resourceVersion should not be set on objects to be created')
        if name in self.objects[resource]:
            raise Refusal(409, 'AlreadyExists', f'{resource}.railhead.io "{name}" already exists', name, resource)
        item = json.loads(json.dumps(sent))
        item['metadata'].update(uid=str(uuid.uuid4()), generation=1,
                                creationTimestamp=datetime.now(timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'))
        self.next(resource, 'ADDED', item)
        self.objects[resource][name] = item
        return item

    def update(self, resource, name, sent):
        if check(resource, sent) != name:
            raise Refusal(400, 'BadRequest', 'the name of the object does not match the name on the URL')
        old = self.find(resource, name)
        meta = sent['metadata']
        if not meta.get('resourceVersion'):
            raise Refusal(422, 'Invalid', 'metadata.resourceVersion: Invalid value: 0x0: must be specified for an update')
        if meta.get('uid', old['metadata']['uid']) != old['metadata']['uid']:
            raise Refusal(409, 'Conflict', f'Operation cannot be fulfilled on {resource}.railhead.io "{name}": '
                          'StorageError: invalid object, Code: 4, Precondition failed: UID', name, resource)
        if meta['resourceVersion'] != old['metadata']['resourceVersion']:
            raise Refusal(409, 'Conflict', f'Operation cannot be fulfilled on {resource}.railhead.io "{name}": the '
                          'object has been modified; please apply your changes to the latest version and try again',
                          name, resource)
        item = json.loads(json.dumps(sent))
        for kept in ('uid', 'creationTimestamp', 'generation'):
            item['metadata'][kept] = old['metadata'][kept]
        # The real server makes no new version of what is the same.
        if {**item, 'metadata': {**item['metadata'], 'resourceVersion': ''}} == \
                {**old, 'metadata': {**old['metadata'], 'resourceVersion': ''}}:
            return old
        item['metadata']['generation'] += item.get('spec') != old.get('spec')
        self.next(resource, 'MODIFIED', item)
        self.objects[resource][name] = item
        return item

    def delete(self, resource, name, options):
        item = self.find(resource, name)
        for field, wanted in (options.get('preconditions') or {}).items():
            if item['metadata'][field] != wanted:
                what = 'UID' if field == 'uid' else 'ResourceVersion'
                raise Refusal(409, 'Conflict', f'Operation cannot be fulfilled on {resource}.railhead.io "{name}": '
                              f'Precondition failed: {what} in precondition: {wanted}, {what} in object meta: '
                              f'{item["metadata"][field]}', name, resource)
        gone = json.loads(json.dumps(item))
        del self.objects[resource][name]
        self.next(resource, 'DELETED', gone)
        return {'kind': 'Status', 'apiVersion': 'v1', 'metadata': {}, 'status': 'Success',
                'details': {'name': name, 'group': 'railhead.io', 'kind': resource, 'uid': item['metadata']['uid']}}

    def list(self, resource, query):
        revision, start = self.revision, ''
        wanted = query.get('resourceVersion', '')
        if 'continue' in query:
            revision, start = parse_continue(query['continue'])
            if revision < 0:
                revision = self.revision
        elif wanted not in ('', '0') and query.get('resourceVersionMatch') == 'Exact':
            revision = int(wanted)
        if revision < self.oldest:
            raise Refusal(410, 'Expired', 'The provided continue parameter is too old to display a consistent list '
                          'result.')
        limit = int(query.get('limit', 0) or 0)
        found = sorted((name, item) for name, item in self.at(resource, revision).items() if name >= start)
        metadata = {'resourceVersion': str(revision)}
        if limit and len(found) > limit:
            token = {'v': 'meta.k8s.io/v1', 'rv': revision, 'start': found[limit - 1][0] + '\0'}
            metadata['continue'] = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip('=')
            metadata['remainingItemCount'] = len(found) - limit
            found = found[:limit]
        return {'apiVersion': GROUP, 'kind': KINDS[resource] + 'List', 'metadata': metadata,
                'items': [item for _, item in found]}


def parse_continue(text):
    """As k8s.io/apiserver/pkg/storage/continue.go does."""
    try:
        token = json.loads(base64.urlsafe_b64decode(text + '=' * (-len(text) % 4)))
        start = token['start']
        if token['v'] != 'meta.k8s.io/v1' or token['rv'] == 0 or not start or \
                os.path.normpath('/' + start) != '/' + start:
            raise ValueError
        return token['rv'], start
    except (ValueError, KeyError, TypeError):
        raise Refusal(400, 'BadRequest', 'continue key is not valid') from None


def check(resource, sent):
    if sent.get('apiVersion') != GROUP or sent.get('kind') != KINDS[resource]:
        raise Refusal(400, 'BadRequest', 'the object provided is unrecognized')
    name = (sent.get('metadata') or {}).get('name', '')
    if not NAME.match(name) or len(name) > 253:
        raise Refusal(422, 'Invalid', f'metadata.name: Invalid value: "{name}"', name)
    if not isinstance(sent.get('spec'), dict):
        raise Refusal(422, 'Invalid', f'{KINDS[resource]} "{name}" is invalid: spec: Required value', name)
    for path, why in crd_schema.problems(SCHEMAS[resource], sent):
        raise Refusal(422, 'Invalid', f'{KINDS[resource]} "{name}" is invalid: {path}: Invalid value: {why}', name)
    return name


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1  # head and body in one packet: two would wait for each other's acknowledgement
    store = Store()
    core = kube_nodes.Core()
    tokens = {}
    scripted = []  # [status, headers, body, times]
    lost = [0]  # answers to come
    state = ''

    def log_message(self, *args):
        pass

    def user(self):
        subject = dict(pair[0] for pair in (self.connection.getpeercert() or {}).get('subject', ()))
        if subject:
            return subject.get('commonName', ''), subject.get('organizationName', '')
        word, _, token = self.headers.get('Authorization', '').partition(' ')
        if not word:
            return 'system:anonymous', ''
        if word != 'Bearer' or token not in self.tokens:
            raise Refusal(401, 'Unauthorized', 'Unauthorized')
        return self.tokens[token], ''

    def send(self, code, body, headers=()):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in dict({'Content-Type': 'application/json', 'Content-Length': str(len(body))},
                                **dict(headers)).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        try:
            self.serve(url.path, query, body)
        except Refusal as refusal:
            self.send(refusal.code, refusal.status)

    def serve(self, path, query, body):
        if path == '/readyz':
            return self.send(200, b'ok')
        if path.startswith('/standin/'):
            return self.control(path, body)
        with self.store.lock:
            if self.scripted and not self.connection.getpeercert():
                one = self.scripted[0]
                one[3] -= 1
                if one[3] == 0:
                    self.scripted.pop(0)
                return self.send(one[0], one[2].encode(), one[1])
        user, group = self.user()
        try:
            with self.store.lock:
                answer = self.core.serve(self.command, path, self.headers.get('Content-Type'), body,
                                         (user == ALLOWED_USER, group == 'system:masters'))
                self.save()
        except kube_nodes.Refused as refused:
            raise Refusal(*refused.answer) from None
        if answer:
            return self.send(*answer)
        parts = path.split('/')
        if parts[:4] != ['', 'apis', 'railhead.io', 'v1alpha1'] or len(parts) not in (5, 6) or parts[4] not in KINDS:
            return self.send(404, b'404 page not found\n', {'Content-Type': 'text/plain; charset=utf-8'})
        resource, name = parts[4], parts[5] if len(parts) == 6 else None
        if user != ALLOWED_USER and group != 'system:masters':
            raise Refusal(403, 'Forbidden', f'{resource}.railhead.io is forbidden: User "{user}" cannot '
                          f'{self.command.lower()} resource "{resource}" in API group "railhead.io" at the cluster scope',
                          name, resource)
        try:
            sent = json.loads(body) if body else {}
        except ValueError:
            raise Refusal(400, 'BadRequest', 'the object provided is no JSON') from None
        if self.command == 'GET' and not name and query.get('watch') in ('1', 'true'):
            return self.watch(resource, query)
        with self.store.lock:
            code, answer = self.change(resource, name, query, sent)
            self.save()
            lost = self.command != 'GET' and self.lost[0] > 0
            self.lost[0] -= lost
        if lost:
            self.close_connection = True
            return None
        return self.send(code, answer)

    def watch(self, resource, query):
        """Events as JSON lines in chunks, until timeoutSeconds. Version 0 begins with all objects."""
        store, at = self.store, int(query.get('resourceVersion') or 0)
        ends = time.monotonic() + float(query.get('timeoutSeconds', 1800))
        with store.lock:
            cuts, events = store.cuts, []
            if at > store.revision:
                raise Refusal(504, 'Timeout', f'Too large resource version: {at}, current: {store.revision}')
            if at == 0:
                at = store.revision
                events = [('ADDED', item) for item in store.objects[resource].values()]
            elif at < store.oldest:
                events = [('ERROR', Refusal(410, 'Expired', f'too old resource version: {at} ({store.oldest})').status)]
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        self.close_connection = True
        while True:
            for event, item in events:
                line = json.dumps({'type': event, 'object': item}).encode() + b'\n'
                self.wfile.write(b'%x\r\n%s\r\n' % (len(line), line))
            self.wfile.flush()
            if events and events[0][0] == 'ERROR' or time.monotonic() > ends:
                break
            with store.lock:
                store.changed.wait_for(lambda: store.revision > at or store.cuts != cuts, 1)
                if store.cuts != cuts:
                    self.wfile.write(b'8\r\n{"type":\r\n')
                    return self.wfile.flush()
                found = store.since(resource, at)
                events = [(event, item) for _, event, item in found]
                if not found and at < store.revision and query.get('allowWatchBookmarks') == 'true':
                    events = [('BOOKMARK', {'apiVersion': GROUP, 'kind': KINDS[resource],
                                            'metadata': {'resourceVersion': str(store.revision)}})]
                at = found[-1][0] if found else store.revision
        return self.wfile.write(b'0\r\n\r\n')

    def change(self, resource, name, query, sent):
        store = self.store
        if self.command == 'GET':
            return 200, store.find(resource, name) if name else store.list(resource, query)
        if self.command == 'POST' and not name:
            return 201, store.create(resource, sent)
        if self.command == 'PUT' and name:
            return 200, store.update(resource, name, sent)
        if self.command == 'DELETE' and name:
            return 200, store.delete(resource, name, sent)
        if self.command == 'DELETE':
            for one in list(store.objects[resource]):
                store.delete(resource, one, {})
            return 200, store.list(resource, {})
        raise Refusal(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource')

    def save(self):
        if not self.state or self.command == 'GET':
            return
        with open(self.state + '.new', 'w', encoding='utf-8') as file:
            json.dump({'revision': self.store.revision, 'objects': self.store.objects, 'nodes': self.core.nodes,
                       'nodes_revision': self.core.revision}, file)
        os.rename(self.state + '.new', self.state)

    @classmethod
    def load(cls, path):
        cls.state = path
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                saved = json.load(file)
            cls.store.load(saved)
            cls.core.nodes, cls.core.revision = saved['nodes'], saved['nodes_revision']

    def control(self, path, body):
        with self.store.lock:
            if path == '/standin/expire':
                self.store.revision += 1
                self.store.oldest = self.store.revision
                self.store.changed.notify_all()
            elif path == '/standin/cut':
                self.store.cuts += 1
                self.store.changed.notify_all()
            elif path == '/standin/lose':
                self.lost[0] += json.loads(body)['times']
            else:
                wanted = json.loads(body)
                self.scripted.append([wanted['status'], wanted.get('headers', {}), wanted.get('body', ''),
                                      wanted.get('times', 1)])
        self.send(200, {})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer


def main():
    parser = argparse.ArgumentParser()
    for option in ('--port-file', '--certificate', '--key', '--authority', '--tokens'):
        parser.add_argument(option, required=True)
    parser.add_argument('--address', default='127.0.0.1')
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--state', default='')
    options = parser.parse_args()
    Handler.load(options.state)
    with open(options.tokens, encoding='utf-8', newline='') as tokens:
        Handler.tokens = {row[0]: row[1] for row in csv.reader(tokens)}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    context.load_verify_locations(options.authority)
    context.verify_mode = ssl.CERT_OPTIONAL
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer.request_queue_size = 128
    server = ThreadingHTTPServer((options.address, options.port), Handler)
    # The handshake is the connection's thread's, so that nobody holds up the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    with open(options.port_file + '.new', 'w', encoding='utf-8') as port_file:
        port_file.write(str(server.server_address[1]))
    os.rename(options.port_file + '.new', options.port_file)
    server.serve_forever()


if __name__ == '__main__':
    main()
