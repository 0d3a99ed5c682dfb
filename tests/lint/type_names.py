#!/usr/bin/env python3
"""type_names.py: each folder's code is in the folder's namespace, and no two headers define types of the same name in one.

Two in one: a program that links both has one of each of their inline functions (a vector's, say) for two layouts, and no tool says so:
it reads and writes beyond what is there.
exit status: 0 all is so; 1 something is not, or what is planted is not found.
"""
import collections
import pathlib
import re
import sys

ROOMS = ('cni', 'ipam', 'netns', 'deviceplugin', 'bench')
NAMESPACE = re.compile(r'^namespace ([\w:]+) \{')
END = re.compile(r'^\}  // namespace ([\w:]+)')
TYPE = re.compile(r'^(?:struct|class|enum class|union) (\w+)(?: final)?(?: :.*| ?\{.*|)$')

# What all others speak in: namespace railhead itself.
VOCABULARY = ('netns', 'cni/fabric', 'cni/protocol', 'cni/state', 'deviceplugin/support/keys', 'deviceplugin/support/kubernetes',
              'deviceplugin/support/log', 'deviceplugin/support/metrics', 'deviceplugin/support/program', 'deviceplugin/support/service', 'deviceplugin/node/snapshot')


def namespace_of(path):
    folder = path.parent.as_posix()
    if folder.startswith(VOCABULARY):
        return 'railhead'
    return 'railhead::' + {'ipam': 'ipam', 'cni/plugin': 'attachment'}.get(folder if folder == 'cni/plugin' else path.parts[0], path.parent.name)


def astray(files):
    for path, text in files:
        for name in re.findall(r'^namespace (railhead[\w:]*) \{$', text, re.M):
            mine = namespace_of(path)
            if name != mine and not name.startswith(mine + '::') and not re.search(rf'^namespace {name} \{{\n(?:class|struct) \w+;\n\}}', text, re.M):
                yield path, name, mine


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
    files = [(path.relative_to(root), path.read_text()) for room in ROOMS for path in sorted((root / room).rglob('*')) if path.suffix in ('.h', '.cc')]
    lost = list(astray(files))
    for path, name, mine in lost:
        print(f'type_names.py: {path} is in namespace {name}, and its folder is {mine}', file=sys.stderr)
    planted = 'namespace railhead {\n\nstruct Planted {\n};\n\n}  // namespace railhead\n'
    strayed = [path for path, _, _ in astray([(pathlib.Path('ipam/store/a.h'), planted), (pathlib.Path('netns/base/a.h'), planted)])]
    if list(twice([('a.h', planted), ('b.h', planted)])) != ['railhead::Planted'] or strayed != [pathlib.Path('ipam/store/a.h')] or count < 300:
        print(f'type_names.py: {count} types were found, and a planted pair or file was not', file=sys.stderr)
        return 1
    print(f'{count} types of headers have names of their own, and {len(files)} files are in the namespaces of their folders')
    return 1 if found or lost else 0


sys.exit(main())
