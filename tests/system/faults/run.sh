#!/bin/bash
# run.sh - run a script in a guest that has two leaf switches: topology leaves, and lldpd (leaf_switches.sh).
#
# usage: run.sh [options of run-guest.sh] SCRIPT [ARG...]
# exit status: run-guest.sh's.
set -euo pipefail
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../support/vm" && pwd)
guest=$("$vm/build-guest.sh") || exit 125
exec "$vm/run-guest.sh" -T leaves -s "switch=$guest/switch" "$@"
