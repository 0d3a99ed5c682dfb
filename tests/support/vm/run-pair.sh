#!/bin/bash
# run-pair.sh - two guests, node 0 and node 1, whose Ethernet hubs are joined.
#
# usage: run-pair.sh [-o DIR] [-0 TOPOLOGY] [-1 TOPOLOGY] [run-guest.sh options] SCRIPT [ARG...]
#   -o DIR       keep the job directories as DIR/node0 and DIR/node1
#   -0, -1       topology of one node (default: as given by -T)
# Both run SCRIPT; $NODE is 0 or 1, $SYNC a directory that both can write to.  Every
# line of output begins with "node0: " or "node1: ".
# exit status: 0 when both succeeded, else that of the first that did not.  A node
# that fails ends the other one after a grace of RAILHEAD_PAIR_GRACE seconds (10).
# If the emulator fails (run-guest.sh), both begin anew, twice at most.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out='' options=() topology=('' '')
while getopts 0:1:b:s:o:t:T:m:c:a:Iv flag; do
    case $flag in
        0) topology[0]=$OPTARG ;;
        1) topology[1]=$OPTARG ;;
        o) out=$OPTARG ;;
        v | I) options+=("-$flag") ;;
        b | s | t | T | m | c | a) options+=("-$flag" "$OPTARG") ;;
        *) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 125 ;;
    esac
done
shift $((OPTIND - 1))

"$here/build-guest.sh" >/dev/null        # once, before both ask for it
# The sockets' names must be short: sun_path has 108 bytes.
shared=$(mktemp -d "${TMPDIR:-/tmp}/railhead-pair.XXXXXX")
pids=('' '')
clean_up() {
    local pid
    for pid in "${pids[@]}"; do [ -z "$pid" ] || kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do [ -z "$pid" ] || wait "$pid" 2>/dev/null || true; done
    rm -rf "$shared"
}
trap clean_up EXIT
trap 'exit 125' INT TERM HUP

start() { # NODE SCRIPT [ARG...]
    local node=$1 other=$((1 - $1)) own=()
    shift
    [ -z "${topology[node]}" ] || own+=(-T "${topology[node]}")
    [ -z "$out" ] || own+=(-o "$out/node$node")
    "$here/run-guest.sh" "${options[@]}" "${own[@]}" -i "$node" -S "$shared/sync" \
        -w "dgram,local.type=unix,local.path=$shared/w$node,remote.type=unix,remote.path=$shared/w$other" "$@" \
        > >(sed -u "s/^/node$node: /") 2>&1 &
    pids[node]=$!
}
# run SCRIPT [ARG...]: both to their ends; sets status.
run() {
    local first='' other
    rm -rf "${shared:?}"/*
    mkdir "$shared/sync"
    start 0 "$@"
    start 1 "$@"
    status=0
    wait -n -p first "${pids[@]}" || status=$?
    other=${pids[0]}
    [ "$first" != "$other" ] || other=${pids[1]}
    case $status in
        0) wait "$other" || status=$? ;;
        126) kill "$other" 2>/dev/null || true ;;
        *)
            # The other one may be about to say what is wrong, too.
            ( end=$((SECONDS + ${RAILHEAD_PAIR_GRACE:-10}))
              while kill -0 "$other" 2>/dev/null && [ $SECONDS -lt $end ]; do sleep 0.2; done
              kill "$other" 2>/dev/null || true ) &
            ;;
    esac
    wait "$other" 2>/dev/null || true
    pids=('' '')
}
for attempt in 1 2 3; do
    run "$@"
    [ "$status" = 126 ] && [ "$attempt" != 3 ] || break
    echo "run-pair.sh: both nodes begin anew" >&2
done
exit "$status"
