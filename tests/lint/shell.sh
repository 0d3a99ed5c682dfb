#!/bin/bash
# shell.sh - shellcheck finds nothing to warn of in any script, and nothing in a pipe is killed by grep's haste:
# "| grep -q" ends at the first match, what writes then dies by SIGPIPE, and with pipefail that counts. Now and then.
set -euo pipefail
cd "$(dirname "$0")/../.."
# Those of a package and plugins of kubectl have no name in .sh: their first line says what they are.
mapfile -t files < <(find tests bench -name '*.sh'; grep -rlE '^#!/bin/(ba)?sh' manifests .ci)
for file in tests/lint/shell.sh manifests/kubectl-railhead .ci/run; do
    printf '%s\n' "${files[@]}" | grep -x "$file" >/dev/null || { echo "shell.sh: $file is not found" >&2; exit 1; }
done
shellcheck -x -S warning "${files[@]}"
hasty=$(grep -l 'set -[a-z]*o pipefail' "${files[@]}" | xargs grep -nE '\| *grep +-[a-zA-Z]*q' | grep -v '^tests/lint/shell.sh:' || true)
[ -z "$hasty" ] || { printf 'shell.sh: a pipe that ends in grep -q, with pipefail:\n%s\n' "$hasty" >&2; exit 1; }
echo "${#files[@]} scripts are clean"
