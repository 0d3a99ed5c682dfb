#!/usr/bin/python3 -B
"""commands.py - each command on a page is one that its program has, and a test runs it.

usage: commands.py RAILCTL [--list]
Pages are README.md, CONTRIBUTING.md and those below manifests and docs. A command is a line of a code block, or a code span
of a program and more words. RAILCTL has to know each `railctl ...` and its options. A test has to run each command of
Railhead's programs with at least its options, and with each [option]. Of another program a test has to run the first
subcommand. What no test runs is in the table of UNTESTED, which has nothing else.
exit status: 0, or 1 with what is wrong. --list: all commands, and whether a test runs them
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

from command_runs import OTHERS, OURS, Command, is_operator, program_of, shell_runs, source_runs, test_runs, tokens

UNTESTED, HEADING = 'docs/reference/untested-commands.md', 'Commands that no test runs'
Use = collections.namedtuple('Use', 'where program words')  # of a command on a page


# ---- what pages have

def page_lines(text):
    """(number, command line, whether it is of a block) of a page."""
    fence = None
    for number, line in enumerate(text.split('\n'), 1):
        if re.match(r' *```', line):
            fence = None if fence is not None else line.strip('` ')
        elif fence is not None or line.startswith('    '):
            if not fence or fence in ('sh', 'console'):
                yield number, re.sub(r'   .*', '', re.sub(r'^ *([^ ]*[$#] )?', '', line)), True
        else:
            for span in re.findall(r'`([^`]+)`', line):
                if ' ' in span:
                    yield number, span.replace('\\|', '|'), False


def page_commands(line):
    """The commands of a command line, also those that kubectl, ssh and others run."""
    part = []
    for word in [*(tokens(re.sub(r'(?<=\w)\|(?=\w)', '\0', line)) or line.split()), ';']:
        if not is_operator(word):
            part.append(word)
            continue
        while part:
            while part and (part[0] in ('sudo', 'do') or re.match(r'\w+=', part[0])):
                part = part[1:]
            program = program_of(part[0]) if part else None
            if program:
                inner = part[2:] if program == 'ssh' else part[1:] if program == 'xargs' else \
                    part[part.index('--') + 1:] if '--' in part else []
                yield Command(program, part[1:len(part) - len(inner)])
            part = inner if program else []


def uses(name, text):
    for number, line, block in page_lines(text):
        found = list(page_commands(line))
        if block and not found and re.match(r'[a-z][\w-]*( [\w./:-]+)* --?[a-z]', line):
            found = [Command(line.split()[0], [])]  # a program that is not known here
        for one in found:
            choices = [(at, word.split('\0')) for at, word in enumerate(one.words) if re.fullmatch(r'\w+(\0\w+)+', word)]
            at, words = choices[0] if choices else (0, one.words[:1])
            for word in words or ['']:
                yield Use(f'{name}:{number}', one.program, [*one.words[:at], word, *one.words[at + 1:]] if one.words else [])


# ---- what railctl has

class Helps:
    """railctl's commands and their options, by its help."""

    def __init__(self, railctl):
        self.railctl, self.known = railctl, {}

    def of(self, path):
        """(whether it needs a subcommand, {its name or alias: name}, {option: long option})"""
        key = tuple(path)
        if key not in self.known:
            text = subprocess.run([self.railctl, *path, '--help'], capture_output=True, text=True, check=False).stdout
            usage, _, text = text.partition('\nExamples:')[0].partition('\nOptions:')
            found = {}
            for names in re.findall(r'^  ((?:-\w,)?--[a-z-]+|[a-z][a-z-]*(?:, [a-z-]+)*)(?= |$)', text, re.M):
                names = re.split(', ?', names)
                found.update(dict.fromkeys(names, names[-1] if names[0][0] == '-' else names[0]))
            self.known[key] = ' SUBCOMMAND' in usage, *({name: found[name] for name in found if (name[0] == '-') == option}
                                                               for option in (False, True))
        return self.known[key]

    def split(self, words):
        """(path of subcommands, what follows it, whether that begins with something that is no subcommand)"""
        path, words = [], list(words)
        while words and words[0] in self.of(path)[1]:
            path.append(self.of(path)[1][words.pop(0)])
        return path, words, bool(words) and self.of(path)[0] and words[0][0] != '-'


def options_of(words, known=None):
    """(options, those in brackets, those not in `known`), each by its long name."""
    found = collections.defaultdict(set)
    option = re.compile(r'(\[?)(--[a-z][a-z-]*|-[a-z])(?![\w-])')
    for bracket, name in [match.groups() for match in map(option.match, words) if match]:
        found['wrong' if known is not None and name not in known else bracket].add((known or {}).get(name, name))
    return found[''], found['['], found['wrong']


# ---- what is wrong

def subcommand_of(use):
    """(program, its first subcommand or None) of another program's command."""
    values, words = OTHERS.get(use.program), list(use.words)
    while values is not None and words and words[0].startswith('-'):
        words = words[2 if words[0] in values.split() else 1:]
    return use.program, words[0] if words and values is not None else ''


def table_of(text):
    """Commands in the first column of the table below HEADING: {command: line}."""
    rows, below = {}, False
    for number, line in enumerate(text.split('\n'), 1):
        below = line.lstrip('# ') == HEADING if line.startswith('#') else below
        if below and line.startswith('| `'):
            rows.update(dict.fromkeys(re.findall(r'`([^`]+)`', line.split(' | ')[0]), number))
    return rows


def problems(pages, runs, helps, show=lambda use, run: None):
    """What is wrong with the commands of `pages`, by the commands `runs` that tests run."""
    rows, used = table_of(pages.get(UNTESTED, '')), set()
    ours, others = collections.defaultdict(list), set()
    for run in runs:
        if run.program in OURS:
            path, words, _ = helps.split(run.words) if run.program == 'railctl' else ([], run.words, False)
            options = options_of(words, helps.of(path)[2] if run.program == 'railctl' else None)[0]
            for end in range(len(path) + 1):  # also of a page that names a group of commands
                ours[run.program, *path[:end]].append(options if end == len(path) else set())
        else:
            others.update({subcommand_of(run), (run.program, '')})
    for use in [use for name, text in pages.items() for use in uses(name, text)]:
        if use.program not in OURS:
            program, word = subcommand_of(use)
            name, run = f'{program} {word}'.strip(), (program, word) in others
            row = next((row for row in (name, program) if row in rows), None)
            if not run and not row:
                yield f'{use.where}: no test runs {name}, and {UNTESTED} does not have it'
            used.update([row] if not run else [])
        elif use.words[:1] != ['...']:
            path, words, unknown = helps.split(use.words) if use.program == 'railctl' else ([], use.words, False)
            has, maybe, wrong = options_of(words, helps.of(path)[2] if use.program == 'railctl' else None)
            name = ' '.join([use.program, *path])
            if unknown or wrong:
                yield f'{use.where}: {name} has no {" ".join(sorted(wrong) or words[:1])}'
                continue
            missing = [wanted for wanted in [has, *({option} for option in maybe)]
                       if not any(wanted <= one for one in ours[use.program, *path])]
            run = not missing
            yield from (f'{use.where}: no test runs {" ".join([name, *sorted(wanted)])}' for wanted in missing)
        show(use, run)
    yield from (f'{UNTESTED}:{rows[row]}: {row} is run by a test, or on no page' for row in rows if row not in used)


def self_test(helps):
    text = '    railctl status\n    ip -n x link show | mlxconfig -d BDF query\n\n`railctl health [-w] [--rail R]`, `railctl net a|b`\n'
    script = 'f() { "$bin/railctl" "$@"; }\ncheck "railctl labels" f health -w  # railctl lldp\n'
    source = 'int Run(string a) {\n  a.insert(a.begin(), RAILCTL);\n}\nx = {{"status"}};\nRun({"reachability"}); Run(one, {"-o", name});'
    runs = [*shell_runs(script + "sh -c 'ip link set'\n"), *source_runs(source, helps.of([])[1])]
    row = f'## {HEADING}\n\n| `mlxconfig` | x |\n'
    assert len(list(problems({'a': text}, runs, helps))) == 2, 'of mlxconfig, and of --rail'
    assert ['--rail' in one for one in problems({'a': text, UNTESTED: row}, runs, helps)] == [True], 'a row'
    assert len(list(problems({UNTESTED: row}, runs, helps))) == 1, 'a row that is not needed'
    assert [one for one in problems({'a': '`railctl labels`, `railctl lldp`'}, runs, helps) if 'no test' in one][1:], 'mentions'
    assert 'has no --x' in ''.join(problems({'a': '`railctl labels --x`'}, runs, helps))
    assert 'has no look' in ''.join(problems({'a': '`railctl look`'}, runs, helps))


def main():
    helps = Helps(pathlib.Path(sys.argv[1]).resolve())
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    self_test(helps)
    pages = [pathlib.Path('README.md'), pathlib.Path('CONTRIBUTING.md'), *sorted(pathlib.Path('manifests').rglob('*.md')),
             *sorted(pathlib.Path('docs').rglob('*.md'))]
    seen = []
    wrong = list(problems({page.as_posix(): page.read_text() for page in pages}, list(test_runs(helps.of([])[1])), helps,
                          lambda use, run: seen.append(('run' if run else '---', *use))))
    if '--list' in sys.argv:
        print('\n'.join(f'{run} {where} {program} {" ".join(words)}' for run, where, program, words in seen))
    if not wrong and len(seen) < 300:
        wrong = [f'commands.py: found only {len(seen)} commands: are they written otherwise now?']
    print('\n'.join(wrong) if wrong else f'{len(seen)} commands are run by tests, or are known to be run by none')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
