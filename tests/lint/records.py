#!/usr/bin/env python3
"""records.py: tests/unit/records_test.cc has every record whose reader passes over what a newer version has added.

What people write is read with UnknownFields::kRefuse or as a section, and tests/unit/schema_test.cc has it.
exit status: 0 all is so; 1 something is not, or what is planted is not found.
"""
import pathlib
import re
import sys

ROOMS = ('cni', 'ipam', 'netns', 'deviceplugin')
READ = re.compile(r'\b(?:ParseRecord|ReadRecord|StateFile)<([\w:]+)>([^;]*)')
# What no test can name, and which listed record has its parts.
ELSEWHERE = {
    'KnownPfs': 'in a source, and read by its owner only',
    'ReadyAnswer': 'in a source, and never kept',
    'SuggestReport': 'NodeObservation is all that is read of it',
}


def lacking(text, listed):
    for name, rest in READ.findall(text):
        name = name.split('::')[-1]
        if name != 'T' and 'UnknownFields::kRefuse' not in rest and name not in listed and name not in ELSEWHERE:
            yield name


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    records = re.search(r'::testing::Types<(.*?)>;', (root / 'tests/unit/records_test.cc').read_text(), re.S)
    listed = {name.split('::')[-1] for name in re.findall(r'[\w:]+', records[1])}
    if list(lacking('auto a = ParseRecord<Planted>(text, "a"); kFile = StateFile<other::Late>{"x"};'
                    'RH_TRY(ParseRecord<Strict>(text, "a", UnknownFields::kRefuse));', listed)) != ['Planted', 'Late']:
        print('records.py: what is planted is not found')
        return 1
    found = 0
    files = sorted(path for room in ROOMS for path in (root / room).rglob('*') if path.suffix in ('.h', '.cc'))
    used = set()
    for path in files:
        text = re.sub(r'//.*', '', path.read_text())
        used |= {name.split('::')[-1] for name, _ in READ.findall(text)}
        for name in lacking(text, listed):
            print(f'{path.relative_to(root)}: {name} is read, and tests/unit/records_test.cc does not list it')
            found += 1
    for name in sorted(ELSEWHERE.keys() - used):
        print(f'tests/lint/records.py: nothing reads {name}')
        found += 1
    return 1 if found else 0


sys.exit(main())
