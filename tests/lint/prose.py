#!/usr/bin/python3 -B
"""prose.py - pages are plain: short sentences, the words of docs/glossary.md, no phrases that a reader has to read twice.

usage: prose.py [--list long|words|phrases] [PAGE...]   default: each *.md
What is measured is running text: no code, tables, headings or links' targets.
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
LONG_SHARE = 0.06           # of all sentences
PHRASES_PER_THOUSAND = 1    # words
HARD = [
    r'\b(is|are) (no|none|nobody|nothing)\b',  # negated nouns: "is no PCI address"
    # relative clauses without a noun: "who has just answered"
    r'(?:^|[.;:,] )(what|who) (is|are|has|have|was|were|asks|answers|does|looks|holds|comes|goes)\b',
    r'\bthat of (a|an|the|each|its)\b',
    r'\b(any more|no more than before|all else|all that|of it)\b',
    r'\b(by then|meanwhile|anew)\b',
]
# A list of names, not running text; and the Chinese pages, for which these are not the rules.
LEFT_OUT = ('docs/glossary.md', 'docs/zh/')


def retired(glossary):
    """The words of the table "Retired words"."""
    table = glossary.partition('\n## Retired words\n')[2]
    rows = re.findall(r'^\| ([^|]+?) \|', table, re.M)
    words = [word for row in rows for word in row.split(', ') if word not in ('word', '---')]
    return re.compile(r'\b(' + '|'.join(words) + r')\b', re.I)


def sentences(text):
    text = re.sub(r'^(```|~~~).*?^\1', '', text, flags=re.S | re.M)
    text = re.sub(r'<!--.*?-->', '', text, flags=re.S)
    left_out = r'\s{4,}\S|\s*\||#|\s*\|?[-:| ]+$'
    text = '\n'.join(line for line in text.splitlines() if not re.match(left_out, line) or re.match(r'\s+[-*\d]', line))
    text = re.sub(r'`[^`]*`', 'CODE', text)
    text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', text)
    for block in re.split(r'\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)', text):
        for sentence in re.split(r'(?<=[.!?])\s+(?=[A-Z`"(])', ' '.join(block.split())):
            if re.search('[A-Za-z]', sentence):
                yield sentence


def measure(text, words):
    """Of each sentence: its words, retired words and hard phrases."""
    for sentence in sentences(text):
        phrases = [match[0] for hard in HARD if (match := re.search(hard, sentence, re.I))]
        yield sentence, len(sentence.split()), words.findall(sentence), phrases


def self_test(words):
    planted = 'The rail is told. Many ' + 'word ' * 26 + 'end. It is no device.\n\n    told in code\n\n| told | in a table |\n'
    found = list(measure(planted, words))
    assert [bool(one[2]) for one in found] == [True, False, False], 'the retired word is not found'
    assert [one[1] > WORDS_OF_A_SENTENCE for one in found] == [False, True, False], 'the long sentence is not found'
    assert [bool(one[3]) for one in found] == [False, False, True], 'the hard phrase is not found'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--list', choices=('long', 'words', 'phrases'))
    parser.add_argument('pages', nargs='*')
    given = parser.parse_args()
    if not given.pages:
        os.chdir(pathlib.Path(__file__).resolve().parents[2])
        listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '*.md'], check=True, capture_output=True, text=True)
        given.pages = [page for page in listed.stdout.split() if not page.startswith(LEFT_OUT) and pathlib.Path(page).is_file()]
    root = pathlib.Path(__file__).resolve().parents[2]
    words = retired((root / 'docs/glossary.md').read_text(encoding='utf-8'))
    self_test(words)
    count = total = long = hard = old = 0
    for page in given.pages:
        for sentence, length, retired_words, phrases in measure(pathlib.Path(page).read_text(encoding='utf-8'), words):
            count, total, long = count + 1, total + length, long + (length > WORDS_OF_A_SENTENCE)
            hard, old = hard + len(phrases), old + len(retired_words)
            shown = {'long': length > WORDS_OF_A_SENTENCE, 'words': retired_words, 'phrases': phrases}
            if given.list and shown[given.list] or retired_words and not given.list:
                print(f'{page}: {sentence}')
    share, rate = long / max(count, 1), hard * 1000 / max(total, 1)
    print(f'{len(given.pages)} pages, {total} words, {count} sentences: {share:.1%} have more than {WORDS_OF_A_SENTENCE} words, '
          f'{old} retired words, {rate:.1f} hard phrases per 1,000 words')
    if share <= LONG_SHARE and rate <= PHRASES_PER_THOUSAND and not old:
        return 0
    print(f'prose.py: at most {LONG_SHARE:.0%} long sentences, {PHRASES_PER_THOUSAND} hard phrase per 1,000 words and no retired words; '
          '--list long, phrases or words shows them', file=sys.stderr)
    return 1


if __name__ == '__main__':
    sys.exit(main())
