#!/bin/bash
# braces.sh - no RH_TRY within a braced initializer.
#
# It returns from its middle, and the compilers do not destroy what the initializer has made by then: a
# leak on the way of an error. Give the value a name first.
# usage: braces.sh [FILE...]   default: all sources
# exit status: 0, or 1 with the places
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || mapfile -t files < <(find netns cni ipam deviceplugin -name '*.h' -o -name '*.cc')
[ $# = 0 ] || files=("$@")
found=$(python3 - "${files[@]}" <<'PYTHON'
import re
import sys

# An element of an initializer: after its brace, a comma or ".name =", with no ";" on the way.
element = re.compile(r"\{(?:[^;{}]*?,\s*)?(?:\.\w+\s*=\s*)?RH_TRY(?:_WRAP)?\(")
for name in sys.argv[1:]:
    text = re.sub(r"//[^\n]*", lambda m: " " * len(m.group()), open(name, encoding="utf-8").read())
    for match in element.finditer(text):
        body = match.group()[:-len("RH_TRY(")]
        # The argument of a call that a body begins with.
        if body.count("(") != body.count(")"):
            continue
        print(f"{name}:{text.count(chr(10), 0, match.end()) + 1}: {match.group().split(chr(10))[-1].strip()}...)")
PYTHON
)
if [ -n "$found" ]; then
    printf '%s\n' "$found" >&2
    echo "RH_TRY in braces leaks what they have made: name its value first" >&2
    exit 1
fi
echo "no RH_TRY in braces in ${#files[@]} files"
