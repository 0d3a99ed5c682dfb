#!/bin/bash
# run.sh - the benchmarks: what ADD, DEL and start-up cost beside Debian's standard
# plugins and beside the bare kernel, and whether the budgets are met.
#
# usage: bench/run.sh [--quick] [--guest-only | --host-only | --node-only | --ipam-only] [--json FILE]
#   --quick       few runs: to see that it works
#   --guest-only  only the part on real VFs in the emulated guest
#   --host-only   only ADD, DEL and start-up on this machine
#   --node-only   only railheadd with 1,024 VFs
#   --ipam-only   only the IPAM plugins alone
#   --json FILE   keep all values, one JSON array
# Installs what is needed and builds (release) first.  Needs root for namespaces.
# Takes about seven minutes after the build.  See docs/design/benchmarks.md.
# exit status: 0 also when a budget is missed, for that is a result; not 0 when
# something could not be measured.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup.sh
. "$here/../tests/setup.sh"
usage() { sed -n '2,/^$/p;/^set /q' "$here/run.sh" | sed '$d; s/^# \?//' >&2; exit 2; }

rounds=50 startup_rounds=300 guest_rounds=15 guest_startup_rounds=50 rails_rounds=7 nics_rounds=40 host=1 guest=1 node=1 ipam=1 json=''
node_options=() ipam_options=()
while [ $# -gt 0 ]; do
    case $1 in
        --quick) rounds=2 startup_rounds=5 guest_rounds=2 guest_startup_rounds=3 rails_rounds=1 nics_rounds=1
            node_options=(-d 2 -a 20 -i 3) ipam_options=(-q) ;;
        --guest-only) host='' node='' ipam='' ;;
        --host-only) guest='' node='' ipam='' ;;
        --node-only) host='' guest='' ipam='' ;;
        --ipam-only) host='' guest='' node='' ;;
        --json) [ $# -ge 2 ] || usage; json=$(realpath -m "$2"); shift ;;
        *) usage ;;
    esac
    shift
done
[ -n "$host$guest$node$ipam" ] || usage

railhead_setup
railhead_build benchmarks
bin=$RAILHEAD_BUILD/bin
work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-bench-run.XXXXXX")
trap 'rm -rf "$work"' EXIT
files=() options=()

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
if [ -n "$host" ]; then
    echo "bench: on this machine" >&2
    "${as_root[@]}" "$here/host.sh" -b "$bin" -n "$rounds" -s "$startup_rounds" -o "$work/host"
    files+=("$work/host")
else
    options+=(--no-host)
fi
if [ -n "$node" ]; then
    echo "bench: railheadd with 1,024 VFs" >&2
    "${as_root[@]}" "$here/node.sh" -b "$bin" "${node_options[@]}" -o "$work/node"
    files+=("$work/node")
else
    options+=(--no-node)
fi
if [ -n "$ipam" ]; then
    echo "bench: the IPAM plugins" >&2
    "$here/ipam.sh" -b "$bin" "${ipam_options[@]}" -o "$work/ipam"
    files+=("$work/ipam")
else
    options+=(--no-ipam)
fi
if [ -n "$guest" ]; then
    echo "bench: in the guest" >&2
    railhead_guest >/dev/null
    "$here/../tests/support/vm/run-guest.sh" -t 900 -b "$RAILHEAD_BUILD" -s cni=/usr/lib/cni -o "$work/job" \
        "$here/guest.sh" "$guest_rounds" "$guest_startup_rounds" "$rails_rounds"
    "$here/../tests/support/vm/run-guest.sh" -t 600 -b "$RAILHEAD_BUILD" -o "$work/nics" "$here/guest_nics.sh" "$nics_rounds"
    files+=("$work/job/lines" "$work/nics/lines")
else
    options+=(--no-guest)
fi
[ -z "$json" ] || jq -s . "${files[@]}" >"$json"
echo "Linux $(uname -r), $(nproc) CPUs; load $(cut -d' ' -f1-3 /proc/loadavg)"
echo
"$here/report.py" "${options[@]}" "${files[@]}"
