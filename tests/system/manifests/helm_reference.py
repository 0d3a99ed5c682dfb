"""docs/reference/helm-values.md: a row for each value, of the chart's schema, its values.yaml and the comments there."""
import json
import re

HEAD = '''# Values of the Helm chart

What `manifests/helm/railhead` takes; [how to install it](../operate/install.md). The chart's `values.schema.json` refuses unknown keys and
wrong types before anything is installed. It includes the schemas of fabric.json and topology.json. A test makes this page of the chart's
`values.yaml` and its schema (`tests/system/manifests/helm.py --write`).

| value | type | default | what |
|---|---|---|---|
'''
# Definitions of the schema that have one row, with the word for their type.
CLOSED = {'fabric': 'object', 'topology': 'object', 'amounts': 'map of quantities', 'count': 'number or percentage', 'strings': 'map of strings',
          'name': 'name'}


def comments(text):
    """{dotted key: the comment above it}; a key may be in a comment itself, as one without a default."""
    found, above, path = {}, [], []
    for line in text.splitlines():
        key = re.match(r'^( *)(?:# )?([A-Za-z]+):(?: |$)', line)
        if key:
            depth = len(key[1]) // 2
            path = [*path[:depth], key[2]]
            found['.'.join(path)] = ' '.join(above)
            above = []
        elif comment := re.match(r'^ *# (.*)', line):
            above.append(comment[1])
        else:
            above = []
    return found


def resolved(schema, part):
    name = part.get('$ref', '').rpartition('/')[2]
    return name, schema['definitions'][name] if name else part


def type_of(schema, part):
    name, part = resolved(schema, part)
    if name in CLOSED:
        return CLOSED[name]
    if 'enum' in part:
        return ', '.join('empty' if one == '' else f'`{one if isinstance(one, str) else json.dumps(one)}`' for one in part['enum'])
    if part['type'] == 'array':
        return f'list of {type_of(schema, part["items"])}s'
    if part['type'] == 'object' and 'properties' not in part:
        return CLOSED['strings']
    return {'boolean': 'bool'}.get(part['type'], part['type'])


def shown(default):
    if default is None:
        return '-'
    return 'empty' if default in ('', [], {}) and default is not False else f'`{default if isinstance(default, str) else json.dumps(default)}`'


def rows(schema, values, texts, part, path=''):
    """Of each value: its name, type, default and text."""
    for key, below in part['properties'].items():
        name, opened = resolved(schema, below)
        where, default = f'{path}{key}', values.get(key)
        if 'properties' in opened and name not in CLOSED:
            yield from rows(schema, default or {}, texts, opened, f'{where}.')
            continue
        yield where, type_of(schema, below), shown(below.get('default', default)), texts.get(where) or below.get('description', '')
        items = opened.get('items', {})
        if any('description' in one for one in items.get('properties', {}).values()):
            yield from rows(schema, {}, {}, items, f'{where}[].')


def without_text(schema, values, texts):
    """Values that say nothing of themselves."""
    return [where for where, _, _, text in rows(schema, values, texts, schema) if not text]


def page(schema, values, values_text):
    return HEAD + ''.join(f'| `{where}` | {kind} | {default} | {text} |\n'
                          for where, kind, default, text in rows(schema, values, comments(values_text), schema))
