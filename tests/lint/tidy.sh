#!/bin/bash
# tidy.sh BUILD - clang-tidy (.clang-tidy, warnings are errors) over the sources.
# All of them take long, so a run looks at one file of 72, which ones depends on
# the commit; with RAILHEAD_TESTS_ALL=1 (tests/run.sh --all) at all.
# RAILHEAD_TIDY_SEED=TEXT repeats another commit's choice.
set -euo pipefail
build=$1
cd "$(dirname "$0")/../.."
[ -r "$build/compile_commands.json" ] || { echo "tidy.sh: no compile_commands.json in $build" >&2; exit 1; }
mapfile -t files < <(find netns cni ipam deviceplugin -name '*.cc' | LC_ALL=C sort)
if [ -z "${RAILHEAD_TESTS_ALL:-}" ]; then
    seed=${RAILHEAD_TIDY_SEED:-$(git rev-parse --short HEAD 2>/dev/null || echo none)}
    echo "seed $seed"
    mapfile -t files < <(printf '%s\n' "${files[@]}" | while read -r file; do
        echo "$(echo "$seed $file" | md5sum | cut -c1-8) $file"
    done | LC_ALL=C sort | cut -d' ' -f2 | head -n $(((${#files[@]} + 71) / 72)))
fi
[ ${#files[@]} -gt 0 ] || { echo "tidy.sh: no files found" >&2; exit 1; }
commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
tests/lint/by_source.py "$build" "$commands"
printf '%s\n' "${files[@]}" | xargs -P2 -n3 clang-tidy --quiet -p "$commands" 2> >(grep -vE '^[0-9]+ warnings? |^Suppressed|^Use -header' >&2)
echo "${#files[@]} files are clean"
