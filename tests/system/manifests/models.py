"""The types of the Kubernetes API, and what an object has that is not of its type.

Read from the files of the Kubernetes Python client without importing it: a type's fields, the types of these, and
which ones have to be there. Stricter than an API server that only warns: a field that is not known is wrong.
"""
import ast
import pathlib
import re

QUANTITY = re.compile(r'^[0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|[eE][0-9]+)?$')
SIMPLE = {'str': str, 'int': int, 'bool': bool, 'float': (int, float), 'datetime': str, 'object': object}


class Models:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.types = {}
        listed = (self.directory / '__init__.py').read_text(encoding='utf-8')
        self.files = {name: file for file, name in re.findall(r'models\.(\w+) import (\w+)', listed)}

    def type_of(self, name):
        """Fields by their JSON names, with their types and whether they are required."""
        if name not in self.types:
            text = (self.directory / f'{self.files[name]}.py').read_text(encoding='utf-8')
            kinds, names = (ast.literal_eval(re.search(rf'^    {table} = (\{{.*?^    \}}|\{{\}})', text, re.M | re.S)[1])
                            for table in ('openapi_types', 'attribute_map'))
            required = set(re.findall(r'client_side_validation and (\w+) is None', text))
            self.types[name] = {names[field]: (kind, field in required) for field, kind in kinds.items()}
        return self.types[name]

    def problems(self, document):
        version, kind = str(document.get('apiVersion')).rpartition('/')[2], str(document.get('kind'))
        name = version.capitalize() + kind
        if name not in self.files:
            return [f'{document.get("apiVersion")} {kind} is no kind of the API']
        return list(self.of_type(name, document, ''))

    def of_type(self, kind, value, path):
        """Sentences."""
        if listed := re.fullmatch(r'list\[(.*)\]', kind):
            yield from self.of_items(listed[1], enumerate(value) if isinstance(value, list) else None, path)
        elif mapped := re.fullmatch(r'dict\(str, (.*)\)', kind):
            yield from self.of_items(mapped[1], value.items() if isinstance(value, dict) else None, path)
        elif kind in SIMPLE:
            if not isinstance(value, SIMPLE[kind]) or isinstance(value, bool) and kind not in ('bool', 'object'):
                yield f'{path}: {value!r} is no {kind}'
        elif not isinstance(value, dict):
            yield f'{path}: {value!r} is no {kind}'
        else:
            fields = self.type_of(kind)
            yield from (f'{path}/{name}: {kind} has no such field' for name in value if name not in fields)
            yield from (f'{path}: {kind} lacks {name}' for name, (_, required) in fields.items()
                        if required and value.get(name) is None)
            for name in value.keys() & fields.keys():
                quantities = kind == 'V1ResourceRequirements' and name in ('limits', 'requests') or name == 'sizeLimit'
                check = of_quantities if quantities else lambda v, p, k=fields[name][0]: self.of_type(k, v, p)
                yield from check(value[name], f'{path}/{name}')

    def of_items(self, kind, items, path):
        if items is None:
            yield f'{path}: is no list or map of {kind}'
            return
        for key, item in items:
            yield from self.of_type(kind, item, f'{path}/{key}')


def of_quantities(value, path):
    for name, quantity in value.items() if isinstance(value, dict) else [('', value)]:
        if not QUANTITY.match(str(quantity)):
            yield f'{path}/{name}: {quantity!r} is no quantity'
