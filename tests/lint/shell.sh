#!/bin/bash
# shell.sh - shellcheck finds nothing to warn of in any script.
set -euo pipefail
cd "$(dirname "$0")/../.."
mapfile -t files < <(find tests bench .ci -name '*.sh' -o -path '.ci/run')
[ ${#files[@]} -gt 0 ] || { echo "shell.sh: no files found" >&2; exit 1; }
shellcheck -x -S warning "${files[@]}"
echo "${#files[@]} scripts are clean"
