#!/bin/bash
# one.sh - builds one test and runs it.
# usage: tests/one.sh                      lists the tests
#        tests/one.sh NAME [OPTION...]     NAME is a test, or a part of its name that only one has
#   OPTION   for a program of gtest: --gtest_filter=PATTERN, --gtest_repeat=N
# A unit or namespace test is built in build/debug. A guest or system test runs the released programs, so these
# are built in build/release first. Install the packages once: tests/setup.sh.
# exit status: the test's; 2 no test, or several, have this name.
set -uo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repo" || exit 2
case ${1:-} in -h | --help) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//'; exit 0 ;; esac
[ -f build/debug/build.ninja ] || cmake --preset debug >/dev/null || exit 2
mapfile -t names < <(ctest --test-dir build/debug -N | sed -n 's/^ *Test *#[0-9]*: //p')
[ $# -gt 0 ] || { printf '%s\n' "${names[@]}"; exit 0; }
wanted=$1
shift
mapfile -t found < <(printf '%s\n' "${names[@]}" | grep -Fx -- "$wanted" || printf '%s\n' "${names[@]}" | grep -F -- "$wanted")
case ${#found[@]} in
    1) ;;
    0) echo "one.sh: no test is named '$wanted': tests/one.sh lists them" >&2; exit 2 ;;
    *) echo "one.sh: several tests have '$wanted' in their names:" >&2; printf '  %s\n' "${found[@]}" >&2; exit 2 ;;
esac
target=${found[0]%.sanitized}
target=${target//./_}
if ninja -C build/debug -t query "$target" >/dev/null 2>&1; then
    ninja -C build/debug --quiet "$target" || exit 1
    exec "build/debug/bin/$target" "$@"
fi
{ [ -f build/release/build.ninja ] || cmake --preset release >/dev/null; } && ninja -C build/release --quiet released || exit 1
exec ctest --test-dir build/debug --output-on-failure -R "^${found[0]//./[.]}\$" "$@"
