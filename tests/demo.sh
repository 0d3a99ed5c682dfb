#!/bin/bash
# demo.sh - two nodes, two rails, a pod on each: from kubelet's Allocate to RDMA.
#
# usage: tests/demo.sh [--break vlan|gid|arp] [--keep [DIR]] [--help]
#   --break FAULT  plant a fault, which the demo then has to find:
#                  vlan  node1's rail0 is in another VLAN than the leaf and node0
#                  gid   nccl.conf is given a GID index that is not the pod's address
#                  arp   the pods do not announce their addresses
#   --keep [DIR]   keep captures, logs and results of both nodes (in DIR)
#
# On a fresh Debian 12 machine (as root, or with sudo): installs packages, builds the
# release, builds a guest, boots two of them with SR-IOV NICs on PCIe switches and
# a leaf router between their rails.  On each, railheadd serves a stand-in of kubelet
# over the real device plugin API, and a pod gets one VF per rail through libcni.
# What happens is shown as it happens; a table of what was checked comes last.
# No KVM, no special hardware: about two minutes once packages, build and guest are there.
#
# exit status: 0 everything held; 1 something did not. With --break: 1 the demo failed
# on exactly the checks that are about the fault; 2 on others, too, or not at all.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup.sh
. "$here/setup.sh"
readonly LIMIT=600                       # seconds for both guests, boot included

usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//'; }
fault=none keep='' directory=''
while [ $# -gt 0 ]; do
    case $1 in
        --break)
            case ${2:-} in vlan | gid | arp) fault=$2 ;; *) echo "demo.sh: --break vlan, gid or arp, not '${2:-}'" >&2; exit 2 ;; esac
            shift ;;
        --keep)
            keep=yes
            case ${2:-} in '' | -*) ;; *) directory=$2; shift ;; esac ;;
        --help | -h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fail() { say "$*"; exit 1; }

say "packages"
railhead_setup || fail "the machine could not be set up"
say "build (release)"
railhead_build railhead railhead-ipam railheadd kubelet-standin cnidriver || fail "the build failed"
say "guest"
railhead_guest >/dev/null || fail "the guest could not be built"

if [ -n "$directory" ]; then mkdir -p "$directory" && out=$(cd "$directory" && pwd)
else out=$(mktemp -d "${TMPDIR:-/tmp}/railhead-demo.XXXXXX"); fi || exit
[ -n "$keep" ] || trap 'rm -rf "$out"' EXIT
trap 'exit 1' INT TERM HUP
rm -f "$out"/node[01]/results

[ "$fault" = none ] || say "the fault '$fault' is planted"
say "two nodes boot"
"$here/vm/run-pair.sh" -t "$LIMIT" -m 640 -0 leaf -1 rail -b "$RAILHEAD_BUILD" -s cni=/usr/lib/cni -o "$out" \
    "$here/demo/node.sh" "$fault" > >(while IFS= read -r line; do say "$line"; done) 2>&1 &
pair=$!
wait "$pair" || say "the nodes ended with exit status $?"

# ---- the table ---------------------------------------------------------------------------
# Both nodes write the same keys, unless one gave up.
declare -A status what
keys=()
for node in 0 1; do
    while IFS=$'\t' read -r state key text; do
        [ -n "${what[$key]:-}" ] || keys+=("$key")
        what[$key]=${what[$key]:-$text}
        # Twice the same key, as for two VFs: the worse one counts.
        [ "${status[$node,$key]:-ok}" = FAIL ] || status[$node,$key]=$state
    done < <(cat "$out/node$node/results" 2>/dev/null)
done
failed=() unreached=0
echo
printf '%-6s %-6s %s\n' node0 node1 'what was checked' '-----' '-----' '----------------'
for key in "${keys[@]}"; do
    for node in 0 1; do
        case ${status[$node,$key]:-none} in
            FAIL) [[ " ${failed[*]} " == *" $key "* ]] || failed+=("$key") ;;
            none) unreached=$((unreached + 1)) ;;
        esac
    done
    printf '%-6s %-6s %s\n' "${status[0,$key]:--}" "${status[1,$key]:--}" "${what[$key]}"
done
echo

if [ "$fault" != none ]; then
    case $fault in vlan) expected=vlan0 ;; gid) expected='rdma0 rdma1' ;; arp) expected='arp0 arp1' ;; esac
    if [ "${failed[*]}" = "$expected" ] && [ $unreached = 0 ]; then
        say "the planted fault '$fault' was found by: $expected"
        exit 1
    fi
    say "the planted fault '$fault' was to be found by '$expected'; failed: '${failed[*]}', not reached: $unreached"
    exit 2
fi
# The last row of a node that came to its end; fewer rows mean that nothing was shown.
if [ ${#failed[@]} != 0 ] || [ $unreached != 0 ] || [ "${status[0,daemon]:-}${status[1,daemon]:-}" != okok ]; then
    say "not everything held"
    [ -z "$keep" ] || say "captures and logs: $out"
    exit 1
fi
say "everything held"
[ -z "$keep" ] || say "captures and logs: $out"
