#!/usr/bin/python3 -B
"""overlays.py MANIFESTS - adds to a copy of manifests/ an overlay for each example of the chart that has none there."""
import pathlib
import sys

import yaml

from helm_compare import make_overlay
from helm_sets import of_examples
from strict_yaml import LOADER


def merged(values, more):
    """As Helm merges files of values."""
    if not isinstance(values, dict) or not isinstance(more, dict):
        return more
    return {**values, **{key: merged(values.get(key), one) for key, one in more.items()}}


def main():
    manifests = pathlib.Path(sys.argv[1])
    for one in of_examples():
        folder, values = manifests / 'overlays' / one.name, {}
        if folder.exists():
            continue
        for name in one.examples:
            text = (manifests / f'helm/railhead/examples/{name}.yaml').read_text(encoding='utf-8')
            values = merged(values, yaml.load(text, LOADER))
        make_overlay(one, values, folder)


main()
