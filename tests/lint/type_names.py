#!/usr/bin/env python3
"""type_names.py: no two headers define types of the same name in the same namespace.

A program that links both has one of each of their inline functions (a vector's, say) for two layouts, and no tool says so:
it reads and writes beyond what is there.
exit status: 0 none do; 1 some do, or the planted pair is not found.
"""
import collections
import pathlib
import re
import sys

ROOMS = ('cni', 'ipam', 'netns', 'deviceplugin', 'bench')
NAMESPACE = re.compile(r'^namespace ([\w:]+) \{')
END = re.compile(r'^\}  // namespace ([\w:]+)')
TYPE = re.compile(r'^(?:struct|class|enum class|union) (\w+)(?: final)?(?: :.*| ?\{.*|)$')


def types_of(text):
    names = []
    for line in text.splitlines():
        if match := NAMESPACE.match(line):
            names.append(match.group(1))
        elif END.match(line) and names:
            names.pop()
        elif (match := TYPE.match(line)) and not line.endswith(';'):
            yield '::'.join([*names, match.group(1)])


def twice(headers):
    places = collections.defaultdict(list)
    for path, text in headers:
        for name in set(types_of(text)):
            places[name].append(str(path))
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    headers = [(path.relative_to(root), path.read_text()) for room in ROOMS for path in sorted((root / room).rglob('*.h'))]
    count = sum(len(set(types_of(text))) for _, text in headers)
    found = twice(headers)
    for name, paths in sorted(found.items()):
        print(f'type_names.py: {name} is defined in {" and in ".join(paths)}: give one of them another name', file=sys.stderr)
    planted = 'namespace railhead {\n\nstruct Planted {\n};\n\n}  // namespace railhead\n'
    if list(twice([('a.h', planted), ('b.h', planted)])) != ['railhead::Planted'] or count < 300:
        print(f'type_names.py: {count} types were found, and a planted pair was not', file=sys.stderr)
        return 1
    print(f'{count} types of headers have names of their own')
    return 1 if found else 0


sys.exit(main())
