#!/bin/bash
# format.sh - every C++ file is as clang-format (.clang-format) writes it.
# exit status: 0, or 1 with the files and the command that fixes them.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(find netns cni ipam deviceplugin tests bench -name '*.h' -o -name '*.cc')
[ ${#files[@]} -gt 0 ] || { echo "format.sh: no files found" >&2; exit 1; }
if ! clang-format --dry-run -Werror "${files[@]}"; then
    echo "fix with: clang-format -i \$(git ls-files '*.h' '*.cc')" >&2
    exit 1
fi
echo "${#files[@]} files are formatted"
