"""The schema of a CustomResourceDefinition, and what an object has that it refuses.

Only what schemas of ours use: type, enum, pattern, limits, required, not, properties,
additionalProperties, items. Another keyword is an error, so that none goes unchecked.
"""
import re

import yaml

KINDS = {'object': dict, 'array': list, 'string': str, 'integer': int, 'boolean': bool}
KNOWN = {'type', 'format', 'description', 'enum', 'pattern', 'minLength', 'maxLength', 'minimum', 'maximum', 'required',
         'not', 'properties', 'additionalProperties', 'items', 'x-kubernetes-preserve-unknown-fields'}


def schemas(path):
    """Plural name -> schema of its only version, of every definition in the file."""
    found = {}
    with open(path, encoding='utf-8') as file:
        for document in yaml.safe_load_all(file):
            version, = document['spec']['versions']
            found[document['spec']['names']['plural']] = version['schema']['openAPIV3Schema']
    return found


def problems(schema, value, path=''):
    """Pairs of a path and what is wrong there."""
    if unknown := schema.keys() - KNOWN:
        raise ValueError(f'{path or "/"}: keywords {sorted(unknown)} are not known here')
    kind = KINDS.get(schema.get('type'), object)
    if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool and kind is not object:
        yield path, f'must be of type {schema["type"]}'
        return
    yield from ((path, why) for why in of_value(schema, value))
    if isinstance(value, dict):
        yield from ((path, f'{name} is missing') for name in schema.get('required', []) if name not in value)
        for name, member in value.items():
            under = schema.get('properties', {}).get(name, schema.get('additionalProperties'))
            if under:
                yield from problems(under, member, f'{path}/{name}')
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(schema.get('items', {}), item, f'{path}/{index}')
    if 'not' in schema and not list(problems(schema['not'], value, path)):
        yield path, 'must not be like that'


def of_value(schema, value):
    if 'enum' in schema and value not in schema['enum']:
        yield f'"{value}" is none of {schema["enum"]}'
    if 'pattern' in schema and not re.search(schema['pattern'], value):
        yield f'"{value}" does not match {schema["pattern"]}'
    if not schema.get('minLength', 0) <= (len(value) if isinstance(value, str) else 0) <= schema.get('maxLength', 1 << 30):
        yield 'is too short or too long'
    if isinstance(value, int) and not schema.get('minimum', value) <= value <= schema.get('maximum', value):
        yield 'is out of range'
