#!/bin/bash
# run.sh - the address store after a loss of power, at every flush of the disk; in a guest.
# usage: run.sh -b BUILD OPERATIONS
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ "${1:-}/$#" = -b/3 ] || { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 2; }
exec "$here/../../support/vm/run-guest.sh" -b "$2" -m 1024 -t 3000 "$here/guest.sh" "$3"
