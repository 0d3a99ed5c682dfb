#!/usr/bin/python3 -B
"""mentions.py - the files of ours that a comment in the code names are there.

usage: mentions.py
A name without a folder is one of any folder. Names below folders that are not ours, and FOREIGN ones, are of others.
exit status: 0, or 1 with the comments that name what is not there
"""
import os
import pathlib
import re
import subprocess
import sys

# The kernel's, LMDB's, NCCL's, NVSHMEM's, CUDA's; and what tests plant.
FOREIGN = {'fib_rules.h', 'neighbour.h', 'midl.h', 'topo.cc', 'env_defs.h', 'nvml.h', '_messages.h', 'a.h'}
OURS = ('netns', 'cni', 'ipam', 'deviceplugin', 'tests', 'bench')
NAME = re.compile(r'(?<![\w<./-])((?:[\w.]+/)*[a-z_0-9]+\.(?:h|cc))\b')


def missing(comment, files, names):
    """What `comment` names that is not there."""
    for name in NAME.findall(comment):
        folder, _, base = name.rpartition('/')
        if base in FOREIGN:
            continue
        if folder.split('/')[0] in OURS:
            if name not in files:
                yield name
        elif not folder and base not in names:
            yield name


def main():
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', *OURS], check=True, capture_output=True, text=True)
    files = {file for file in listed.stdout.split('\n') if file.endswith(('.h', '.cc')) and pathlib.Path(file).is_file()}
    names = {file.rpartition('/')[2] for file in files}
    if list(missing('a b_c.h, netns/base/d.cc, linux/e.h and kernel.h', files, names)) != ['b_c.h', 'netns/base/d.cc']:
        sys.exit('mentions.py: it does not find what it looks for')
    wrong = 0
    for file in sorted(files):
        for number, line in enumerate(pathlib.Path(file).read_text(encoding='utf-8').split('\n'), 1):
            _, found, comment = line.partition('//')
            for name in missing(comment, files, names) if found else ():
                print(f'{file}:{number}: there is no {name}')
                wrong += 1
    print(f'{len(files)} files, {wrong} of their mentions wrong')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
