"""The tables of docs/: rows by section."""

import functools
import re

CODE = re.compile(r"`([^`]*)`")
CELL = re.compile(r"(?<!\\)\|")


class Row:
    """One row of a table: its cells, and the names in the first one."""

    def __init__(self, cells):
        self.cells = cells
        self.names = CODE.findall(cells[0])

    @classmethod
    def of(cls, line):
        return cls([cell.strip() for cell in CELL.split(line)[1:-1]])


@functools.cache
def sections(text):
    """{heading: [Row]}; the rows of a section before its next heading of any level."""
    found, heading, fenced = {}, "", False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
        elif line.startswith("|"):
            row = Row.of(line)
            if row.names or any(row.names for row in found.get(heading, [])):
                found.setdefault(heading, []).append(row)
            elif re.fullmatch(r"\d+", row.cells[0]):
                found.setdefault(heading, []).append(row)
    return found


def names(rows):
    """All names of these rows, in their order; a name twice is there twice."""
    return [name for row in rows for name in row.names]
