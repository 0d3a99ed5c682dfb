"""command_runs.py - the commands that tests run: in scripts, in lists of words of Python, and in calls of C++.

A source has a program's path as a macro, RAILCTL, and calls helpers that put it before the words of the call.
"""
import collections
import os
import pathlib
import re
import shlex

OURS = {'railctl', 'railheadd', 'railhead-ipam', 'railhead'}
# Other programs, and their options with a value before the subcommand, of those that have subcommands.
OTHERS = {'kubectl': '-n -l -c -o', 'ip': '-n -netns', 'mlxconfig': '-d', **dict.fromkeys(
    'apt crictl dcb devlink etcdctl git helm kustomize lldptool rdma skopeo systemctl systemd-analyze'.split(), '')}
PLAIN = set('cat chmod chown cmake cni-conformance cp cpack ctest curl diff dracut echo env ethtool grep ibv_devinfo journalctl ls '
            'lsns lspci man mkdir mlnx_qos modprobe mpirun numactl ompi_info openssl perfquery ps python3 railhead_node_bench scp '
            'setpci ssh systemd-tmpfiles tcpdump ucx_info update-initramfs xargs'.split())
OPERATORS = '();<>|&`'
Command = collections.namedtuple('Command', 'program words')


def tokens(line):
    """Shell words and operators of `line` without its comment; None if a quotation goes on."""
    for end in [found.start() for found in re.finditer(r'(?:^|\s)#(?=\s)', line)] + [len(line)]:
        lexer = shlex.shlex(line[:end], posix=True, punctuation_chars=OPERATORS)
        lexer.whitespace_split, lexer.commenters = True, ''
        try:
            return list(lexer)
        except ValueError:
            continue
    return None


def is_operator(word):
    return bool(word) and all(letter in OPERATORS for letter in word)


def program_of(word):
    """The program that a word of a command line names, as a path or as a variable; a path of this repository as it is."""
    word = os.path.normpath(re.sub(r'^(?:\$\{?\w+\}?|\.)/', '', word)).removeprefix('../')
    name = re.sub(r'[${}]', '', word).rpartition('/')[2]
    if '/' in word and re.search(r'\.(sh|py)$', word) and pathlib.Path(word).is_file():
        return word
    return name if name in OURS or name in OTHERS or name in PLAIN else None


def shell_runs(text):
    """The commands of a script. A function that passes "$@" to one is one itself: its calls have the words of both."""
    functions, waiting = {}, [(text, '')]
    while waiting:
        text, name = waiting.pop()
        held = ''
        for line in text.replace('\\\n', ' ').split('\n'):
            held = f'{held}\n{line}' if held else line
            if re.match(r'\s*#', held) or (words := tokens(held)) is None and held.count('\n') < 30:
                held = '' if re.match(r'\s*#', held) else held
                continue
            held, words = '', words or held.split()
            if (began := re.match(r'(?:function )?(\w+)\(\) ', line)):
                name = began[1]
            for at, word in enumerate(words):
                if '$(' in word:
                    waiting.append((word.partition('$(')[2], name))
                elif at and ' ' in word and re.fullmatch(r'-\w*c', words[at - 1]):
                    waiting.append((word, name))
                program, before = functions.get(word, (program_of(word), []))
                if not program:
                    continue
                rest = words[at + 1:]
                rest = rest[:next((i for i, one in enumerate(rest) if is_operator(one)), len(rest))]
                if name and '$@' in rest and name != word:
                    functions[name] = program, [*before, *rest[:rest.index('$@')]]
                yield Command(program, [*before, *rest])
            if line.rstrip().endswith('}'):
                name = ''


def balanced(text, start):
    """From the bracket at `start` to its partner, without what strings hold."""
    depth = 0
    for found in re.compile(r'"(?:[^"\\\n]|\\.)*"|[(){}]').finditer(text, start):
        depth += (found[0] in '({') - (found[0] in ')}')
        if depth == 0:
            return text[start:found.end()]
    return text[start:]


def literals(text):
    return [word for string in re.findall(r'"((?:[^"\\\n]|\\.)*)"', text) for word in string.split()]


def source_runs(text, commands):
    """The commands of a test's source: {RAILCTL, "x"}, and calls of functions that prepend RAILCTL. A call with a variable
    stands for each of the lists of `commands` in the source. Other programs are named by their path."""
    for words in map(literals, re.findall(r'\{"/[^{}]*\}', text)):
        if words and program_of(words[0]):
            yield Command(program_of(words[0]), words[1:])
    for program in OURS:
        macro = program.upper().replace('-', '_')
        if not re.search(rf'\b{macro}\b', text):
            continue
        text = text.replace(' = {})', ')')
        bodies = [(found[1], balanced(text, found.end() - 1)) for found in
                  re.finditer(r'\b(?!TEST|if|for|while|switch)(\w+)\([^;{}]*string[^;{}]*\)[\w ]*\{(?=\n)', text)]
        helpers, known = {}, -1  # {name: words before and after those of a call}
        while known != len(helpers):
            known = len(helpers)
            for name, body in bodies:
                called = next((words for helper, words in helpers.items() if re.search(rf'\b{helper}\(', body)), None)
                if name not in helpers and (re.search(rf'\b{macro}\b', body) or called):
                    after = ' '.join(re.findall(r'(?:end\(\)|emplace_back).*?\);', body))
                    before = ' '.join(re.findall(r'begin\(\), \{.*?\}|\{' + macro + r'\b[^}]*\}', body))
                    first, last = called or ([], [])
                    helpers[name] = [*first, *literals(before)], [*literals(after), *last]
        for found in re.finditer(rf'\{{{macro}\b[^}}]*\}}', text):
            yield Command(program, literals(found[0]))
        lists = [literals(found) for found in re.findall(r'\{"[^{}]*\}', text)]
        lists = [one for one in lists if one and one[0] in commands]
        for block in text.split('\n}\n'):
            inserted = literals(' '.join(re.findall(r'\binsert\(.*?\);', block, re.S)))
            for name, (before, after) in [*helpers.items(), ('RunProcess', (None, []))]:
                for found in re.finditer(rf'\b{name}\(', block):
                    call = balanced(block, found.end() - 1)
                    if block.startswith('.status, 2)', found.end() - 1 + len(call)):
                        continue  # a wrong command line
                    if not re.match(r'\((?:std::move\()?[a-z]', call):
                        yield from [Command(program, [*before, *literals(call), *after])] if before is not None else []
                    elif macro in block or name != 'RunProcess':  # a variable
                        for one in lists:
                            yield Command(program, [*(before or []), *one, *after])
                            yield Command(program, [*(before or []), *one, *literals(call), *inserted, *after])


def test_runs(commands):
    """The commands that tests run, of which railctl has `commands`."""
    headers = {path.name: path.read_text() for path in pathlib.Path('tests').rglob('*.h')}
    supports = {path.stem + '.h': path.read_text() for path in pathlib.Path('tests/support').rglob('*.cc')}
    for path in sorted(pathlib.Path('tests').rglob('*')):
        if path.name in ('setup.sh', 'build-guest.sh'):
            continue  # the names in them are of packages and files
        if path.suffix == '.sh' or path.name == 'CMakeLists.txt':
            yield from shell_runs(path.read_text().replace('${CMAKE_CURRENT_SOURCE_DIR}', str(path.parent)))
        elif path.suffix == '.py':
            for program, words in re.findall(r'''(?:[(\[]|/ )["']([\w./-]+)["']((?:, \*?["']?[^"',()\[\]]*["']?)*)''', path.read_text()):
                if path.name != 'commands.py' and program_of(program):
                    yield Command(program_of(program), [word.strip(' "\'') for word in words.split(',')[1:]])
        elif path.suffix == '.cc':
            text = path.read_text()
            for included in re.findall(r'#include "(?:[^"]*/)?([^"/]+)"', text):
                text += headers.get(included, '') + supports.get(included, '')
            yield from source_runs(text, commands)
