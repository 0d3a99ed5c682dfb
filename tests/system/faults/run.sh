#!/bin/bash
# run.sh - run a script in a guest that has two leaf switches: topology leaves, and lldpd (leaf_switches.sh).
#
# usage: run.sh [--pair] [options of run-guest.sh] SCRIPT [ARG...]
#   --pair   in two guests that are joined (run-pair.sh)
# exit status: run-guest.sh's.
set -euo pipefail
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../support/vm" && pwd)
guest=$("$vm/build-guest.sh") || exit 125
run=$vm/run-guest.sh
[ "${1:-}" != --pair ] || { run=$vm/run-pair.sh; shift; }
exec "$run" -T leaves -s "switch=$guest/switch" "$@"
