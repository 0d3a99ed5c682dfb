#!/bin/bash
# links.sh - what the documents link to is there: files, sections, pictures; so are the files that their code names;
# and the pictures are what their script draws.
#
# usage: links.sh [FILE...]   default: all *.md
# exit status: 0, or 1 with the links that lead nowhere
set -euo pipefail
cd "$(dirname "$0")/../.."
files=("$@")
[ $# -gt 0 ] || mapfile -t files < <(find . -name '*.md' -not -path './build/*' -not -path './.*/*')
python3 - "${files[@]}" <<'PYTHON'
import pathlib
import re
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def prose(path):
    """The text without code."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(path):
    """Of headings, as Git's web pages make them."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    titles = re.findall(r"^#+ +(.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


NAMED = re.compile(r"(?<![\w./-])(?:netns|cni|ipam|deviceplugin|manifests|tests|bench|docs)/[\w./*-]*[\w/*]")


def named(path):
    """Files and folders of the repository in spans and blocks of code, but for those that `cp -r` makes there."""
    text = path.read_text(encoding="utf-8")
    made = tuple(re.findall(r"cp -r \S+ (\S+)", text))
    code = re.findall(r"^(?:```.*?^```|    .*?$)", text, re.S | re.M) + re.findall(r"`[^`\n]+`", text)
    names = {name for part in code for name in NAMED.findall(part)}
    return sorted(name for name in names if not (made and name.startswith(made)))


broken, count = [], 0
for name in sys.argv[1:]:
    path = pathlib.Path(name)
    for target in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", target):
            continue
        count += 1
        file, _, section = target.partition("#")
        to = path.parent / file if file else path
        if not to.exists():
            broken.append(f"{path}: there is no {target}")
        elif section and to.suffix == ".md" and section not in anchors(to):
            broken.append(f"{path}: {to.name} has no section #{section}")
    for target in named(path):
        count += 1
        if not list(pathlib.Path().glob(target)):
            broken.append(f"{path}: there is no {target}")
print("\n".join(broken) if broken else f"{count} links lead somewhere", file=sys.stderr if broken else sys.stdout)
sys.exit(1 if broken else 0)
PYTHON
docs/pictures/draw.py --check
