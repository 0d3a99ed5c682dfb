#!/usr/bin/env python3
"""tidy.py BUILD [SOURCE...]: clang-tidy (.clang-tidy, warnings are errors) finds nothing in all sources, or in those named.

Most of the time goes into headers, which each source has parsed and searched again. So the usual form joins the sources of
neighbouring folders, and leaves out the checks of SLOW. With RAILHEAD_TESTS_ALL=1 (tests/run.sh --all), each source
is searched by itself for all, so that also a missing include shows. What both forms have to find is planted first.
A name that two joined sources define ("redefinition of") needs a namespace or another name.
exit status: 0 nothing is found; 1 something is, or what is planted is not.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ('netns', 'cni', 'ipam', 'deviceplugin')
# Lines of sources that are joined at most, but for one folder that has more: larger pieces have fewer headers in all, smaller
# ones need less memory.
LINES = 16000
SLOW = (
    'clang-analyzer-*',  # follows functions of the main file only, so that it would follow none of a joined source
    'performance-unnecessary-value-param',  # a third of the time
    'bugprone-reserved-identifier',  # a tenth; the compiler's own headers have most of what it reads
    'bugprone-stringview-nullptr',  # a twentieth
)
PRECOMPILED = re.compile(r' -Winvalid-pch| -Xclang -include-pch -Xclang \S+ -Xclang -include -Xclang \S+')
NOISE = re.compile(r'[0-9]+ warnings? |Suppressed|Use -header')
PLANTED = {
    'planted.h': 'struct Planted {\n  Planted(int number) : value(number) {}\n  int value;\n};\n',
    'first.cc': '#include "planted.h"\nint First(Planted planted) {\n  if (planted.value == 1) return 2;\n  else return 3;\n}\n',
    'second.cc': 'typedef int Second;\nSecond Follow(int* pointer) {\n  if (pointer == nullptr) return *pointer;\n  return 1;\n}\n',
}
FOUND = {'planted.h:2': 'google-explicit-constructor', 'first.cc:4': 'readability-else-after-return', 'second.cc:1': 'modernize-use-using'}
FOUND_BY_ALL = {'second.cc:3': 'clang-analyzer-core.NullDereference'}


def commands_of(build):
    """The command of each source, also in a tree that joins them (CMAKE_UNITY_BUILD).

    Precompiled headers are left out: a source has to include what it uses.
    """
    commands = {}
    for entry in json.loads((build / 'compile_commands.json').read_text()):
        entry['command'] = PRECOMPILED.sub('', entry['command'])
        joined = pathlib.Path(entry['file'])
        sources = [str(joined)]
        if re.fullmatch(r'unity_\d+_cxx\.cxx', joined.name):
            sources = re.findall(r'^#include "(/.*)"$', joined.read_text(), re.MULTILINE)
        for source in sources:
            commands[source] = entry | {'file': source, 'command': entry['command'].replace(str(joined), source)}
    return commands


def pieces_of(sources):
    """Sources of neighbouring folders. Those of one folder stay together, those of two programs do not."""
    pieces, lines, programs = [], LINES, 0
    for _, folder in itertools.groupby(sources, os.path.dirname):
        folder = list(folder)
        text = ''.join(pathlib.Path(source).read_text() for source in folder)
        lines += text.count('\n')
        programs += text.count('\nint main(')
        if lines > LINES or programs > 1:
            pieces.append([])
            lines, programs = text.count('\n'), text.count('\nint main(')
        pieces[-1] += folder
    return pieces


def joined(entries, name):
    """Writes the file NAME that includes the sources of all entries, and has the command for it."""
    pathlib.Path(name).write_text(''.join(f'#include "{entry["file"]}"  // NOLINT(bugprone-suspicious-include)\n' for entry in entries))
    first = entries[0]
    settings = {}  # in the order of the sources
    for entry in entries:
        words = shlex.split(entry['command'])
        for word, following in zip(words, words[1:]):
            if word == '-isystem':
                settings[f'-isystem {following}'] = True
            elif word.startswith(('-I', '-D')):
                settings[shlex.quote(word)] = True
    return first | {'file': name, 'command': f'{first["command"].replace(first["file"], name)} {" ".join(settings)}'}


def search(entries, all_checks):
    """What clang-tidy says of the sources of these commands, '' for nothing."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = []
        if not all_checks:
            entries = [joined(piece, f'{folder}/piece_{number}.cc') for number, piece in enumerate(entries)]
            arguments = ['--checks=' + ','.join(f'-{check}' for check in SLOW)]
        pathlib.Path(folder, 'compile_commands.json').write_text(json.dumps(entries))

        def one(entry):
            done = subprocess.run(['clang-tidy', '--quiet', f'--config-file={ROOT}/.clang-tidy', '-p', folder, *arguments, entry['file']],
                                  capture_output=True, text=True, check=False)
            said = ''.join(line for line in done.stderr.splitlines(True) if not NOISE.match(line))
            return done.stdout + said if done.returncode else ''

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return ''.join(pool.map(one, entries))


def overlooked(all_checks):
    """What is planted and not found."""
    with tempfile.TemporaryDirectory() as folder:
        inside = pathlib.Path(folder, FOLDERS[0])
        inside.mkdir()
        for name, text in PLANTED.items():
            (inside / name).write_text(text)
        entries = [{'directory': folder, 'file': f'{inside}/{name}', 'command': f'clang++ -std=c++20 -c {inside}/{name}'}
                   for name in PLANTED if name.endswith('.cc')]
        said = search(entries if all_checks else [entries], all_checks)
    wanted = FOUND | FOUND_BY_ALL if all_checks else FOUND
    return [f'{place} ({check})' for place, check in wanted.items()
            if not re.search(rf'/{re.escape(place)}:.*\[{re.escape(check)},', said)]


def main():
    all_checks = bool(os.environ.get('RAILHEAD_TESTS_ALL'))
    if missed := overlooked(all_checks):
        print('tidy.py: what is planted is not found:', *missed)
        return 1
    commands = commands_of(pathlib.Path(sys.argv[1]))
    named = [str(pathlib.Path(name).resolve()) for name in sys.argv[2:]]
    sources = named or sorted(str(path) for folder in FOLDERS for path in (ROOT / folder).rglob('*.cc'))
    if lacking := [source for source in sources if source not in commands]:
        print('tidy.py: not compiled in', sys.argv[1] + ':', *lacking)
        return 1
    if all_checks:
        said = search([commands[source] for source in sources], True)
    else:
        said = search([[commands[source] for source in piece] for piece in pieces_of(sources)], False)
    if said:
        print(said)
        return 1
    print(f'{len(sources)} files are clean')
    return 0


sys.exit(main())
