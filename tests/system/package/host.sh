#!/bin/bash
# host.sh [BUILD] - the package of the release build on a host with systemd: host_guest.sh in a guest.
# exit status: run-guest.sh's
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(realpath "${1:-$here/../../../build/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
"$here/pack.sh" "$build" "$work" >/dev/null
"$here/../../support/vm/run-guest.sh" -I -b "$build" -s cni=/usr/lib/cni -s "package=$work" -t "${RAILHEAD_LIMIT:-780}" "$here/host_guest.sh"
