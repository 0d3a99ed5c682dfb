#!/bin/bash
# demo.sh - two nodes, two rails, a pod on each: from kubelet's Allocate to RDMA; and a node
# whose pods get the VF next to their GPU, as containers.
#
# usage: tests/demo.sh [--fabric flat|routed] [--break vlan|gid|arp|topology|segment] [--keep [DIR]] [--help]
#   --fabric KIND  flat    each rail is one network over both nodes (default)
#                  routed  each node has networks of its own, of 8 and of 2 addresses, behind the leaf;
#                          without the part with GPUs
#   --break FAULT  plant a fault, which the part of the demo that it is in has to find:
#                  vlan      node1's rail0 is in another VLAN than the leaf and node0
#                  gid       nccl.conf is given a GID index that is not the pod's address
#                  arp       the pods do not announce their addresses
#                  topology  topology.json says that near is far
#                  segment   routed: node1's rail0 has no route to node0, and the leaf no address on its rail1
#   --keep [DIR]   keep captures, logs and results of all nodes (in DIR)
#
# On a fresh Debian 12 machine (as root, or with sudo): installs packages, builds the
# release, its Debian package and its image, builds a guest, boots two of them with SR-IOV
# NICs on PCIe switches and a leaf router between their rails.  On each, dpkg installs the
# package and systemd starts railheadd, which serves a stand-in of kubelet over the real
# device plugin API, and a pod gets one VF per rail through libcni.
# A third guest has two GPUs on each of two PCIe switches and Debian's containerd, which runs the
# DaemonSet's pod from the image: four pods with late binding, a GPU each, print in their
# containers what they have got.
# What happens is shown as it happens; tables of what was checked come last.
# No KVM, no special hardware. Each step says how long it takes on two cores.
#
# exit status: 0 everything held; 1 something did not. With --break: 1 the demo failed
# on exactly the checks that are about the fault; 2 on others, too, or not at all.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup.sh
. "$here/setup.sh"
readonly LIMIT=900                       # seconds for each part's guests, boot included

usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//'; }
fault=none fabric=flat keep='' directory=''
while [ $# -gt 0 ]; do
    case $1 in
        --break)
            case ${2:-} in vlan | gid | arp | topology | segment) fault=$2 ;; *) echo "demo.sh: --break vlan, gid, arp, topology or segment, not '${2:-}'" >&2; exit 2 ;; esac
            shift ;;
        --fabric)
            case ${2:-} in flat | routed) fabric=$2 ;; *) echo "demo.sh: --fabric flat or routed, not '${2:-}'" >&2; exit 2 ;; esac
            shift ;;
        --keep)
            keep=yes
            case ${2:-} in '' | -*) ;; *) directory=$2; shift ;; esac ;;
        --help | -h) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done

case $fault-$fabric in
    segment-flat) fabric=routed ;;
    vlan-routed | topology-routed) echo "demo.sh: the fault '$fault' is of the flat fabric" >&2; exit 2 ;;
esac

say() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fail() { say "$*"; exit 1; }

say "packages: 2 min the first time, then none (all times: on two idle cores)"
railhead_setup || fail "the machine could not be set up"
say "build of the release: 9 min the first time"
railhead_build programs || fail "the release could not be built"
say "guest: 1 min the first time"
railhead_guest >/dev/null || fail "the guest could not be built"

if [ -n "$directory" ]; then mkdir -p "$directory" && out=$(cd "$directory" && pwd)
else out=$(mktemp -d "${TMPDIR:-/tmp}/railhead-demo.XXXXXX"); fi || { railhead_why '' "${directory:-${TMPDIR:-/tmp}}"; fail "there is no folder for results"; }
guests=''
clean_up() {
    [ -z "$guests" ] || { kill "$guests" 2>/dev/null && wait "$guests"; }
    [ -n "$keep" ] || rm -rf "$out"
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
rm -f "$out"/node[01]/results "$out"/late/{results,bound}

say "package: 10 s"
rm -rf "$out/package"
"$here/system/package/pack.sh" "$RAILHEAD_BUILD" "$out/package" >/dev/null || { railhead_why '' "$out"; fail "the package could not be built"; }

[ "$fault" = none ] || say "the fault '$fault' is planted"
narrate() { while IFS= read -r line; do say "$line"; done; }
pair=yes late=yes                        # the parts
case $fault-$fabric in vlan-* | gid-* | arp-* | *-routed) late='' ;; topology-*) pair='' ;; esac
# boot COMMAND...: in the background, so that signals are taken at once.
boot() {
    "$@" > >(narrate) 2>&1 &
    guests=$!
    wait $guests || say "the guests ended with exit status $?"
    guests=''
}
if [ -n "$pair" ]; then
    say "two nodes boot: 2 min until their pods have ended"
    boot "$here/support/vm/run-pair.sh" -I -t "$LIMIT" -m 640 -0 leaf -1 rail -b "$RAILHEAD_BUILD" -s cni=/usr/lib/cni -s "package=$out/package" -o "$out" \
        "$here/system/demo/node.sh" "$fault" "$fabric"
fi
if [ -n "$late" ]; then
    say "a node with GPUs boots: 3 min until its pods have ended"
    boot "$here/system/cri/run.sh" -D 1 -t "$LIMIT" -m 768 -T gpus -b "$RAILHEAD_BUILD" -o "$out/late" \
        "$here/system/demo/late.sh" "$fault"
fi

# ---- the tables --------------------------------------------------------------------------
declare -A status what
# take NAME FILE: its checks, into status[NAME,KEY] and what[KEY]. Twice the same key, as for
# two VFs: the worse one counts. Both nodes of the pair have the same keys, unless one gave up.
take() {
    local state key text
    while IFS=$'\t' read -r state key text; do
        [ -n "${what[$key]:-}" ] || keys+=("$key")
        what[$key]=${what[$key]:-$text}
        [ "${status[$1,$key]:-ok}" = FAIL ] || status[$1,$key]=$state
    done < <(cat "$2" 2>/dev/null)
}
failed=() unreached=0
# table NAME...: a column for each, a row for each of the keys.
table() {
    local key name
    echo
    printf '%-6s ' "$@" && echo 'what was checked'
    printf '%.0s-----  ' "$@" && echo '----------------'
    for key in "${keys[@]}"; do
        for name in "$@"; do
            printf '%-6s ' "${status[$name,$key]:--}"
            case ${status[$name,$key]:-none} in
                FAIL) [[ " ${failed[*]} " == *" $key "* ]] || failed+=("$key") ;;
                none) unreached=$((unreached + 1)) ;;
            esac
        done
        echo "${what[$key]}"
    done
}
if [ -n "$pair" ]; then
    keys=()
    for node in 0 1; do take "node$node" "$out/node$node/results"; done
    table node0 node1
fi
if [ -n "$late" ]; then
    keys=() what=()
    take late "$out/late/results"
    table late
    echo
    { printf 'GPU\tits switch\tVF\tits switch\t\n' && sort "$out/late/bound" 2>/dev/null; } |
        while IFS=$'\t' read -r gpu near vf there state; do printf '%-13s %-13s %-13s %-13s %s\n' "$gpu" "$near" "$vf" "$there" "$state"; done
fi
echo

# The last row of a node that came to its end; fewer rows mean that nothing was shown.
ended=yes
[ -z "$pair" ] || [ "${status[node0,daemon]:-}${status[node1,daemon]:-}" = okok ] || ended=''
[ -z "$late" ] || [ "${status[late,end]:-}" = ok ] || ended=''
if [ "$fault" != none ]; then
    case $fault in vlan) expected=vlan0 ;; gid) expected='rdma0 rdma1' ;; arp) expected='arp0 arp1' ;; topology) expected=beside ;; segment) expected='routes0 gateway1' ;; esac
    if [ "${failed[*]}" = "$expected" ] && [ $unreached = 0 ] && [ -n "$ended" ]; then
        say "the planted fault '$fault' was found by: $expected"
        exit 1
    fi
    say "the planted fault '$fault' was to be found by '$expected'; failed: '${failed[*]}', not reached: $unreached"
    exit 2
fi
if [ ${#failed[@]} != 0 ] || [ $unreached != 0 ] || [ -z "$ended" ]; then
    say "not everything held"
    [ -z "$keep" ] || say "captures and logs: $out"
    exit 1
fi
say "everything held"
[ -z "$keep" ] || say "captures and logs: $out"
