#!/usr/bin/python3 -B
"""translations.py - the pages of docs/zh have what their English pages have.

usage: translations.py
The first lines of each page but README.md link its English page, which links back. Section by section, both have the same
level of heading, code blocks, tables (rows, and in each cell the code and the links), links, code and numbers in running text.
A link to a translated page may lead to either language, but has to lead to the same section.
docs/zh/README.md has the section "Install" of README.md.
exit status: 0, or 1 with what differs
"""
import os
import pathlib
import posixpath
import re
import sys

FOLDER = 'docs/zh'
INDEX = FOLDER + '/README.md'
FRONT, INSTALL = 'README.md', ('install', '安装')  # of INDEX, one section is a translation
ENGLISH = re.compile(r'^英文原文：\[[^\]]*\]\(([^)\s]+)\)$', re.M)
CHINESE = re.compile(r'^\[中文\]\(([^)\s]+)\)$', re.M)
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
SPAN = re.compile(r'`([^`]+)`')
NUMBER = re.compile(r'\d+(?:\.\d+)*')


def path_of(link, page):
    """The file that `link` of `page` leads to."""
    file = link.partition('#')[0]
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), file)) if file else page


class Section:
    def __init__(self, title):
        self.level = len(title) - len(title.lstrip('#'))
        self.anchor = re.sub(r'[^\w\- ]', '', title.lstrip('# ').lower()).replace(' ', '-')
        self.code, self.rows, self.lines = [], [], []

    @property
    def text(self):
        return '\n'.join(self.lines)


def sections(text):
    """The sections of a page; without the lines that link its other language."""
    found, fenced = [Section('')], False  # the first one: before the first heading
    for line in CHINESE.sub('', ENGLISH.sub('', text)).split('\n'):
        if line.startswith('```'):
            fenced = not fenced
        if line.startswith('#') and not fenced:
            found.append(Section(line))
        elif fenced or line.startswith(('```', '    ')):
            found[-1].code.append(line)
        elif line.startswith('|'):
            found[-1].rows.append(re.split(r'(?<!\\)\|', line)[1:-1])
        else:
            found[-1].lines.append(line)
    return found


class Pages:
    """Pages by path, of which some are translations of others."""

    def __init__(self, texts):
        self.sections = {path: sections(text) for path, text in texts.items()}
        self.english = {path: path_of(link[1], path) for path, text in texts.items() if (link := ENGLISH.search(text[:400]))}

    def links(self, text, page):
        """Where the links of `text` lead: English files, and sections: the number in pages that are here, otherwise the name."""
        found = []
        for link in LINK.findall(text):
            path, anchor = ('', link) if re.match(r'[a-z]+:', link) else (path_of(link, page), link.partition('#')[2])
            anchors = [section.anchor for section in self.sections.get(path, [])]
            found.append((self.english.get(path, path), str(anchors.index(anchor)) if anchor in anchors else anchor))
        return sorted(found)

    def facts(self, text, page):
        """What a translation leaves as it is."""
        spans = sorted(SPAN.findall(text))
        plain = LINK.sub('', SPAN.sub('', text))
        return {'code': spans, 'links': self.links(SPAN.sub('', text), page), 'numbers': sorted(NUMBER.findall(plain))}

    def differences(self, page):
        """Of the translation `page` from its English page."""
        english, chinese = self.sections[self.english[page]], self.sections[page]
        if [one.level for one in english] != [one.level for one in chinese]:
            yield f'{len(english) - 1} headings are {len(chinese) - 1}, or of other levels'
            return
        for ours, theirs in zip(english, chinese):
            yield from self.of_section(ours, theirs, self.english[page], page)

    def of_section(self, ours, theirs, english, page):
        where = f'#{theirs.anchor} (#{ours.anchor})'
        if ours.code != theirs.code:
            yield f'{where}: another code block: {sorted(set(ours.code) ^ set(theirs.code))}'
        if [len(row) for row in ours.rows] != [len(row) for row in theirs.rows]:
            yield f'{where}: {len(ours.rows)} rows of tables are {len(theirs.rows)}, or have other cells'
            return
        pairs = [pair for rows in zip(ours.rows, theirs.rows) for pair in zip(*rows)]
        for one, other in [(ours.text, theirs.text), *pairs]:
            wanted, found = self.facts(one, english), self.facts(other, page)
            for what in wanted:
                if wanted[what] != found[what]:
                    yield f'{where}: {what} {wanted[what]} are {found[what]}'

    def of_install(self):
        """Of the section of INDEX that FRONT has, too."""
        found = [[one for one in self.sections[path] if one.anchor == anchor] for path, anchor in zip((FRONT, INDEX), INSTALL)]
        if [len(one) for one in found] != [1, 1]:
            return [f'there are not one section #{INSTALL[0]} and one #{INSTALL[1]}']
        return self.of_section(found[0][0], found[1][0], FRONT, INDEX)


PLANTED = {
    'README.md': '# Title\n\n## Install\n\nBy `x`.\n\n    run x\n',
    'docs/zh/README.md': '# 标题\n\n## 安装\n\n用 `x`。\n\n    run x\n',
    'docs/a.md': '# Title\n\n[中文](zh/a.md)\n\nFor `x`, 20 s. [b](b.md#two), [here](#part)\n\n    run x\n\n'
                 '## Part\n\n| a | b |\n|---|---|\n| `c` | d |\n| `e` | [f](b.md) |\n',
    'docs/zh/a.md': '# 标题\n\n英文原文：[Title](../a.md)\n\n[b](../b.md#two)、[本页](#部分)：`x` 用 20 s。\n\n    run x\n\n'
                    '## 部分\n\n| 甲 | 乙 |\n|---|---|\n| `c` | 丁 |\n| `e` | [己](../b.md) |\n',
}
FAULTS = [('    run x', '    run y'), ('    run x\n', ''), ('| `c` | 丁 |\n', ''), ('| `c` |', '| `g` |'), ('| 丁 |', '| 丁 | 戊 |'),
          ('## 部分\n', ''), ('## 部分', '### 部分'), ('[己](../b.md)', '[己](../g.md)'), ('[己](../b.md)', '己'),
          ('#two', '#one'), ('(#部分)', '(#标题)'), ('`x`', 'x'), ('20 s', '30 s')]


def self_test():
    page = 'docs/zh/a.md'
    assert not list(Pages(PLANTED).differences(page)), 'equal pages differ'
    for right, wrong in FAULTS:
        text = PLANTED[page].replace(right, wrong)
        assert text != PLANTED[page] and list(Pages({**PLANTED, page: text}).differences(page)), f'{wrong!r} is not found'
    assert not list(Pages(PLANTED).of_install()), 'equal sections differ'
    for wrong in ('    run x', '`x`', '## 安装'):
        assert list(Pages({**PLANTED, INDEX: PLANTED[INDEX].replace(wrong, 'y')}).of_install()), f'{wrong!r} is not found'


def main():
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    self_test()
    paths = [pathlib.Path(FRONT), *sorted(pathlib.Path('docs').rglob('*.md'))]
    texts = {path.as_posix(): path.read_text(encoding='utf-8') for path in paths}
    pages = Pages(texts)
    translated = [path for path in texts if path.startswith(FOLDER + '/') and path != INDEX]
    wrong = [] if translated else [f'{FOLDER}: there are no pages']
    for page in translated:
        english = pages.english.get(page)
        if english not in texts:
            wrong.append(f'{page}: its first lines do not link its English page')
            continue
        back = CHINESE.search(texts[english][:400])
        if not back or path_of(back[1], english) != page:
            wrong.append(f'{english}: its first lines do not link {page}')
        if page not in [path_of(link, INDEX) for link in LINK.findall(texts[INDEX])]:
            wrong.append(f'{INDEX}: there is no link to {page}')
        wrong += [f'{page}: {text}' for text in pages.differences(page)]
    wrong += [f'{INDEX}: {text}' for text in pages.of_install()]
    print('\n'.join(wrong) if wrong else f'{len(translated)} pages have what their English pages have')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
