#!/bin/bash
# tidy.sh BUILD [--list] - clang-tidy (.clang-tidy, warnings are errors) over sources.
# All of them take long. A run looks at those that differ from RAILHEAD_LINT_BASE, a commit,
# and at those that include a header that differs: 6 at most, drawn by the commit. If there are
# fewer, one in 72 of the others follows, again drawn by the commit, so that each gets its turn.
#   RAILHEAD_LINT_BASE=COMMIT   by default the newest commit that is older than 24 hours
#   RAILHEAD_TESTS_ALL=1        all sources (tests/run.sh --all)
#   --list                      only print the sources
set -euo pipefail
build=$1
cd "$(dirname "$0")/../.."
[ -r "$build/compile_commands.json" ] || { echo "tidy.sh: no compile_commands.json in $build" >&2; exit 1; }
readonly MOST=6 TURNS=72
mapfile -t files < <(find netns cni ipam deviceplugin -name '*.cc' | LC_ALL=C sort)
head=$(git rev-parse HEAD 2>/dev/null || echo none)

# drawn: standard input's lines in an order that the commit gives.
drawn() {
    while read -r file; do echo "$(echo "$head $file" | md5sum | cut -c1-8) $file"; done | LC_ALL=C sort | cut -d' ' -f2
}

# changed: the sources that differ from the base, and those that include a header that does.
changed() {
    local base=${RAILHEAD_LINT_BASE:-$(git rev-list -1 --before='24 hours ago' HEAD 2>/dev/null)} header
    [ -n "$base" ] || return 0
    git diff --name-only --diff-filter=d "$base" -- netns cni ipam deviceplugin | while read -r file; do
        case $file in
            *.cc) echo "$file" ;;
            *.h) header=${file//./\\.}; grep -lE "^#include \"$header\"" "${files[@]}" || true ;;
        esac
    done | LC_ALL=C sort -u
}

if [ -z "${RAILHEAD_TESTS_ALL:-}" ]; then
    mapfile -t some < <(changed | drawn | head -n $MOST)
    mapfile -t -O ${#some[@]} some < <(printf '%s\n' "${files[@]}" | drawn | head -n $(((${#files[@]} + TURNS - 1) / TURNS)))
    mapfile -t files < <(printf '%s\n' "${some[@]}" | LC_ALL=C sort -u | drawn | head -n $MOST)
fi
[ ${#files[@]} -gt 0 ] || { echo "tidy.sh: no files found" >&2; exit 1; }
if [ "${2:-}" = --list ]; then printf '%s\n' "${files[@]}"; exit; fi
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
tests/lint/by_source.py "$build" "$commands"
printf '%s\n' "${files[@]}" | xargs -P2 -n3 clang-tidy --quiet -p "$commands" 2> >(grep -vE '^[0-9]+ warnings? |^Suppressed|^Use -header' >&2)
echo "${#files[@]} files are clean"
