#!/usr/bin/env python3
"""modules.py: no script of ours has the name of one of Python's own modules.

A script's folder comes first where Python looks for modules: "types.py" took the place of the one that enum imports, for itself and
for its neighbours. Only where nothing had imported Python's earlier, at its start: on a bare machine.
exit status: 0 none has; 1 some have, or the planted one is not found.
"""
import pathlib
import sys

ROOMS = ('cni', 'ipam', 'netns', 'deviceplugin', 'tests', 'bench', 'manifests', 'docs')


def hiding(paths):
    return [path for path in paths if path.stem in sys.stdlib_module_names]


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    paths = [path.relative_to(root) for room in ROOMS for path in sorted((root / room).rglob('*.py'))]
    found = hiding(paths)
    for path in found:
        print(f"modules.py: {path} hides Python's own module {path.stem}: give it another name", file=sys.stderr)
    planted = pathlib.Path('tests/lint/types.py')
    if hiding([planted, pathlib.Path(__file__)]) != [planted] or not paths:
        print(f'modules.py: the planted one was not found, or none of {len(paths)} scripts', file=sys.stderr)
        return 1
    print(f"{len(paths)} scripts have names that Python's modules have not")
    return 1 if found else 0


sys.exit(main())
