#!/bin/bash
# tidy.sh BUILD [PART PARTS] - clang-tidy (.clang-tidy, warnings are errors) over
# the libraries and programs. PART of PARTS (0-based): every PARTS-th file, so that
# several runs share the work.
set -euo pipefail
build=$1 part=${2:-0} parts=${3:-1}
cd "$(dirname "$0")/../.."
[ -r "$build/compile_commands.json" ] || { echo "tidy.sh: no compile_commands.json in $build" >&2; exit 1; }
mapfile -t files < <(find netns cni ipam deviceplugin -name '*.cc' | LC_ALL=C sort | awk -v p="$part" -v n="$parts" 'NR % n == p')
[ ${#files[@]} -gt 0 ] || { echo "tidy.sh: no files found" >&2; exit 1; }
clang-tidy --quiet -p "$build" "${files[@]}" 2> >(grep -vE '^[0-9]+ warnings? |^Suppressed|^Use -header' >&2)
echo "${#files[@]} files are clean"
