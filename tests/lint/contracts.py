#!/usr/bin/python3 -B
"""contracts.py - each header has one contract, and a name that says what it declares.

usage: contracts.py
A header opens with its contract: the comment before `#pragma once`. No second contract stands behind it: at most one line of its
comments has "Threads:". A word of its name is in the names of what it declares, or in the first paragraph of its contract.
An exception excuses one of these and states why. There are at most MOST, and one that is no longer needed is refused.
exit status: 0, or 1 with the headers that are not so
"""
import os
import pathlib
import re
import subprocess
import sys

ROOMS = ('netns', 'cni', 'ipam', 'deviceplugin')
MOST = 10
EXCEPTIONS = {
    'cni/attachment/verify.h': 'verify is what CHECK does; its functions find differences',
    'cni/nccl/hardware.h': "NCCL's name for what is below it: processor and PCIe link",
    'deviceplugin/services/kubelet/handlers.h': 'gRPC calls the functions handlers; each is named after its call',
    'deviceplugin/services/provision/report.h': 'the report is of plan and outcome, which its functions name',
    'deviceplugin/tools/rdma_test/session.h': 'the two ends of a session are its functions',
    'netns/base/text.h': 'functions on text, each named after what it does',
    'netns/packet/frames.h': 'the frames are its functions, each named after one',
}
DECLARED = re.compile(r'\b(?:class|struct|enum|using|concept|define) +(\w+)|\b(k[A-Z]\w*)|\b([A-Z]\w*)\(|\b(?:Shape|Names)<([\w:]+)>')
# So much of a word: routing is about a route, migration migrates.
STEM = 4


def declared(code):
    return {name for groups in DECLARED.findall(code) for name in groups if name}


def faults(header, text):
    """What is wrong with the header of this name and text."""
    opening, pragma, rest = text.partition('#pragma once\n')
    if not pragma or not opening.startswith('//') or re.search('^(?!//)', opening.rstrip('\n'), re.M):
        yield 'it does not open with its contract'
    contracts = len(re.findall(r'//.*\bThreads:', text))
    if contracts > 1:
        yield f'it has {contracts} contracts'
    names = ' '.join(declared(re.sub('//.*', '', rest))) + ' ' + opening.partition('\n//\n')[0]
    words = [word.removesuffix('s')[:STEM] for word in pathlib.Path(header).stem.split('_')]
    if not any(word in names.lower() for word in words):
        yield 'nothing that it declares has its name'


def finds_planted():
    good = '// Counter: counts.\n//\n// Threads: one.\n#pragma once\n\nclass Counter {\n  // Not atomic.\n};\n'
    planted = [
        ('counter.h', good, []),
        ('counter.h', good + '\n// Threads: any.\nclass Gauge {};\n', ['it has 2 contracts']),
        ('counter.h', good.replace('// Counter: counts.\n//\n// Threads: one.\n', ''), ['it does not open with its contract']),
        ('counter.h', good.replace('// Threads: one.\n', '\n// Threads: one.\n'), ['it does not open with its contract']),
        ('gauges.h', good, ['nothing that it declares has its name']),
    ]
    return all(list(faults(header, text)) == wanted for header, text, wanted in planted)


def main():
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    if not finds_planted():
        sys.exit('contracts.py: it does not find what it looks for')
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', *(f'{room}/*.h' for room in ROOMS)],
                            check=True, capture_output=True, text=True)
    headers = {header for header in listed.stdout.split('\n') if header and pathlib.Path(header).is_file()}
    wrong = [f'{len(EXCEPTIONS)} exceptions, and at most {MOST} may be'] if len(EXCEPTIONS) > MOST else []
    wrong += [f'{header}: the exception is of no header' for header in sorted(EXCEPTIONS.keys() - headers)]
    for header in sorted(headers):
        found = list(faults(header, pathlib.Path(header).read_text(encoding='utf-8')))
        if header in EXCEPTIONS:
            found = found[1:] if found else ['the exception is no longer needed']
        wrong += [f'{header}: {fault}' for fault in found]
    for line in wrong:
        print(line)
    print(f'{len(headers)} headers, {len(EXCEPTIONS)} exceptions, {len(wrong)} wrong')
    return 1 if wrong or not headers else 0


if __name__ == '__main__':
    sys.exit(main())
