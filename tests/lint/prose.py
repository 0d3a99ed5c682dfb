#!/usr/bin/python3 -B
"""prose.py - text is plain: short sentences, no retired word of CONTRIBUTING.md, no phrases that a reader has to read twice.

usage: prose.py [--list long|words|phrases] [FILE...]   default: pages, sources, scripts, manifests
Measured are pages, comments, and the messages of the product (string literals with blanks), each kind for
itself; the cells of a page's tables, too. Not measured are a page's code, headings and links' targets.
Names of sources, and every word of scripts and manifests, are held to that table only.
--list prints each sentence that is too long, has a retired word or a hard phrase.
exit status: 0, or 1 when a measure is above its limit
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

WORDS_OF_A_SENTENCE = 25
LONG_SHARE = {'pages': 0.06, 'tables': 0.06, 'comments': 0.03, 'messages': 0.0, 'names': 0.0}  # of all sentences
PHRASES_PER_THOUSAND = 1    # words
HARD = [
    r'\b(is|are) (no|none|nobody|nothing)\b',  # negated nouns: "is no PCI address"
    # relative clauses without a noun: "who has just answered"
    r'(?:^|[.;:,] )(what|who) (is|are|has|have|was|were|asks|answers|does|looks|holds|comes|goes)\b',
    r'\bthat of (a|an|the|each|its)\b',
    r'\b(any more|no more than before|all else|all that|of it)\b',
    r'\b(by then|meanwhile|anew)\b',
]
# Outside of running text these have their common sense: "the rest", "it looks like"; "leaves" is a verb there, or the
# leaves of a tree. HOME is the shell's.
COMMON_ELSEWHERE = ('look', 'looks', 'rest', 'rests')
COMMON = {
    'pages': (), 'tables': (*COMMON_ELSEWHERE, 'leaves'), 'comments': COMMON_ELSEWHERE, 'messages': COMMON_ELSEWHERE,
    'names': (*COMMON_ELSEWHERE, 'leaves', 'home'),
}
SCRIPTS = ('.sh', '.py', '.yaml', '.cmake', '.txt', '.json', '.go')
# The page with the table of retired words, which is not measured itself.
RETIRED = 'CONTRIBUTING.md'
# The Chinese pages, for which these are not the rules.
# This file has the words to find. A new word in the last two would make every guest and tool image be built again.
LEFT_OUT = ('docs/zh/', 'tests/lint/prose.py', 'tests/support/vm/build-guest.sh', 'tests/support/vm/guest-init.sh', 'tests/system/manifests/tools.sh')


def without_retired(page):
    """(`page` without its section "Retired words", that section)"""
    before, heading, behind = page.partition('\n## Retired words\n')
    section, following, after = behind.partition('\n## ')
    return before + following + after, heading + section


def retired(page):
    """The words of the table "Retired words"."""
    table = without_retired(page)[1]
    rows = re.findall(r'^\| ([^|]+?) \|', table, re.M)
    words = [word for row in rows for word in row.split(', ') if word not in ('word', '---')]
    return re.compile(r'\b(' + '|'.join(words) + r')\b', re.I)


def page(text):
    text = re.sub(r'^(```|~~~).*?^\1', '', text, flags=re.S | re.M)
    text = re.sub(r'<!--.*?-->', '', text, flags=re.S)
    left_out = r'\s{4,}\S|\s*\||#|\s*\|?[-:| ]+$'
    text = '\n'.join(line for line in text.splitlines() if not re.match(left_out, line) or re.match(r'\s+[-*\d]', line))
    text = re.sub(r'`[^`]*`', 'CODE', text)
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', text)
    return re.split(r'\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)', text)


def tables(text):
    rows = [line for line in re.sub(r'^(```|~~~).*?^\1', '', text, flags=re.S | re.M).splitlines() if line.lstrip().startswith('|')]
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', re.sub(r'`[^`]*`', 'CODE', '\n'.join(rows)))
    return re.split(r'(?<!\\)\||\n', text)


def comments(text):
    """Blocks of lines that are comments, and comments behind code."""
    lines = []
    for line in text.splitlines():
        whole = re.match(r'\s*//+ ?(.*)', line)
        behind = re.search(r'[;{},)] +// (.*)', line)
        lines += [whole[1]] if whole else ['', behind[1], ''] if behind else ['']
    return re.sub(r'`[^`]*`', 'CODE', '\n'.join(lines)).split('\n\n')


def messages(text):
    text = re.sub(r'^\s*(//|#include).*', '', text, flags=re.M)
    literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)
    return [literal for literal in literals if ' ' in literal.strip() and re.search('[a-z]{3}', literal)]


def names(text, is_script):
    """The words that names consist of: snake_case and CamelCase are taken apart."""
    if not is_script:
        text = re.sub(r'//.*|"(?:[^"\\\n]|\\.)*"', '', text)
    return [' '.join(re.findall(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+', name)) for name in re.findall(r'[A-Za-z]\w*', text)]


def sentences(blocks):
    for block in blocks:
        for sentence in re.split(r'(?<=[.!?])\s+(?=[A-Z`"(])', ' '.join(block.split())):
            if re.search('[A-Za-z]', sentence):
                yield sentence


def kinds_of(name, text):
    """What of a file is measured: its kind and its blocks."""
    if name.endswith('.md'):
        yield 'pages', page(text)
        yield 'tables', tables(text)
        return
    is_script = name.endswith(SCRIPTS)
    yield 'names', names(text, is_script)
    if is_script:
        return
    yield 'comments', comments(text)
    if not name.startswith(('tests/', 'bench/')):
        yield 'messages', messages(text)


def measure(blocks, words):
    """Of each sentence: its words, retired words and hard phrases."""
    for sentence in sentences(blocks):
        phrases = [match[0] for hard in HARD if (match := re.search(hard, sentence, re.I))]
        yield sentence, len(sentence.split()), words.findall(sentence), phrases


def self_test(words):
    for name, text in {'a.cc': 'int toldRail = 0;', 'a.h': 'void TellStations();', 'a.sh': 'ill_rail=1'}.items():
        assert [one for one in measure(dict(kinds_of(name, text))['names'], words) if one[2]], f'{name}: the retired word is not found'
    rest, table = without_retired('# A\n\n## Retired words\n\n| told | set |\n\n## B\n\nText.\n')
    assert 'told' not in rest and '## B' in rest and retired(table).search('told'), 'the table is not taken out'
    wrong = 'The rail is told. Many ' + 'word ' * 26 + 'end. It is no device.'
    code = f'// {wrong}\nint told = 0;  // A rail.\nFail("{wrong}", "told");\n'
    texts = {'pages': wrong + '\n\n    told in code\n\n| told | in a table |\n', 'comments': code, 'messages': code}
    for kind, text in texts.items():
        blocks = dict(kinds_of('a.md' if kind == 'pages' else 'a.cc', text))[kind]
        found = [one for one in measure(blocks, words) if one[0] != 'A rail.']
        assert [bool(one[2]) for one in found] == [True, False, False], f'{kind}: the retired word is not found'
        assert [one[1] > WORDS_OF_A_SENTENCE for one in found] == [False, True, False], f'{kind}: the long sentence is not found'
        assert [bool(one[3]) for one in found] == [False, False, True], f'{kind}: the hard phrase is not found'


class Measures:
    """Of all texts of one kind."""

    def __init__(self, kind):
        self.kind, self.sentences, self.words, self.long, self.retired, self.hard = kind, 0, 0, 0, 0, 0

    def add(self, length, retired_words, phrases):
        self.sentences, self.words = self.sentences + 1, self.words + length
        self.long += length > WORDS_OF_A_SENTENCE
        self.retired, self.hard = self.retired + len(retired_words), self.hard + len(phrases)

    def print(self):
        """Returns whether all are within their limits."""
        share, rate = self.long / max(self.sentences, 1), self.hard * 1000 / max(self.words, 1)
        print(f'{self.kind}: {self.words} words, {self.sentences} sentences: {share:.1%} have more than {WORDS_OF_A_SENTENCE} words, '
              f'{self.retired} retired words, {rate:.1f} hard phrases per 1,000 words')
        good = share <= LONG_SHARE[self.kind] and rate <= PHRASES_PER_THOUSAND and not self.retired
        if not good:
            print(f'prose.py: {self.kind}: at most {LONG_SHARE[self.kind]:.0%} long sentences, {PHRASES_PER_THOUSAND} hard phrase per '
                  '1,000 words and no retired words; --list long, phrases or words shows them', file=sys.stderr)
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--list', choices=('long', 'words', 'phrases'))
    parser.add_argument('files', nargs='*')
    given = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    if not given.files:
        os.chdir(root)
        listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '*.md', '*.h', '*.cc', *('*' + end for end in SCRIPTS)], check=True, capture_output=True, text=True)
        given.files = [name for name in listed.stdout.split() if not name.startswith(LEFT_OUT) and pathlib.Path(name).is_file()]
    words = retired((root / RETIRED).read_text(encoding='utf-8'))
    self_test(words)
    all_measures = {kind: Measures(kind) for kind in LONG_SHARE}
    for name in given.files:
        for kind, blocks in kinds_of(name, without_retired(pathlib.Path(name).read_text(encoding='utf-8'))[0]):
            for sentence, length, found, phrases in measure(blocks, words):
                retired_words = [word for word in found if word.lower() not in COMMON[kind]]
                all_measures[kind].add(length, retired_words, phrases)
                shown = {'long': length > WORDS_OF_A_SENTENCE, 'words': retired_words, 'phrases': phrases}
                if given.list and shown[given.list] or retired_words and not given.list:
                    print(f'{name}: {sentence}')
    return 0 if all([measures.print() for measures in all_measures.values() if measures.sentences]) else 1


if __name__ == '__main__':
    sys.exit(main())
