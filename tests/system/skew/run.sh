#!/bin/bash
# run.sh - version skew: programs of two versions on one node, over stand-ins for VFs.
#
# usage: tests/system/skew/run.sh [--show] [-b BUILD] --old DIR|COMMIT
#   -b BUILD      build tree of the new version; default: build "release" first
#   --old DIR     directory of railhead, railhead-ipam, railheadd and railctl of the version before
#   --old COMMIT  these programs of a commit of this repository, built in build/skew/HASH unless they are there
#   --show        print all that failed commands said, and railheadd's log
# It prints what was tried and the outcome per pair of versions, then the reason of each failure. Needs root.
# All happens in network and mount namespaces of its own, below a tmpfs: nothing of the machine is touched.
# exit status: 0 all is well; 1 a failure; 2 could not be run.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
usage() { sed -n '2,/^set /p' "$here/run.sh" | sed '$d; s/^# \?//'; }
die() { echo "tests/system/skew/run.sh: $*" >&2; exit 2; }

arguments=("$@") build='' old='' show=''
while [ $# -gt 0 ]; do
    case $1 in
        -b) build=${2:?-b needs a directory}; shift ;;
        --old) old=${2:?--old needs a directory or a commit}; shift ;;
        --show) show=1 ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
readonly PROGRAMS=(railhead railhead-ipam railheadd railctl)
# build_commit COMMIT: its programs, by its own scripts, in a copy of its tree; sets old to their directory.
build_commit() {
    local hash tree
    hash=$(git -C "$repo" rev-parse --quiet --verify "$1^{commit}") || die "--old: '$1' is neither a directory nor a commit"
    tree=$repo/build/skew/$hash
    old=$tree/build/release/bin
    [ ! -e "$tree/built" ] || return 0
    mkdir -p "$tree" && git -C "$repo" archive "$hash" | tar -x -C "$tree" || die "the tree of $1 could not be unpacked in $tree"
    echo "the programs of $1 are built in $tree"
    # shellcheck disable=SC2016 # of the other shell
    bash -c 'cd "$0" && . tests/setup.sh && railhead_setup && cmake --preset release && cmake --build --preset release --target "$@"' \
        "$tree" "${PROGRAMS[@]}" >"$tree.log" 2>&1 || die "the programs of $1 could not be built; all that was said is in $tree.log"
    touch "$tree/built"
}

if [ -z "$build" ]; then
    # shellcheck source=tests/setup.sh
    . "$repo/tests/setup.sh"
    railhead_setup && railhead_build released || exit 2
    build=$RAILHEAD_BUILD
fi
new=$(cd "$build/bin" && pwd) || die "there is no $build/bin"
[ -n "$old" ] || { usage >&2; exit 2; }
[ -d "$old" ] || build_commit "$old"
old=$(cd "$old" && pwd) || die "there is no directory of the old version"
for directory in "$new" "$old"; do
    for program in "${PROGRAMS[@]}"; do
        [ -x "$directory/$program" ] || die "there is no $directory/$program"
    done
done
for program in crash_sweep kubelet-standin; do [ -x "$new/$program" ] || die "there is no $new/$program"; done
if [ -z "${RAILHEAD_SKEW_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || die "network namespaces need root"
    RAILHEAD_SKEW_INSIDE=1 exec unshare --net --mount --propagation private "$here/run.sh" "${arguments[@]}" -b "$build" --old "$old"
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-skew.XXXXXX")
mount -t tmpfs -o size=256m tmpfs "$work" || die "no tmpfs"
mkdir -p /run/netns || die "there is no /run/netns"
mount -t tmpfs tmpfs /run/netns || die "no tmpfs"
trap 'stop_node; umount "$work" && rmdir "$work"' EXIT
# shellcheck source=tests/system/skew/node.sh
. "$here/node.sh"

# ---- what is tried ---------------------------------------------------------------------
rows=() columns=() failures=()
declare -A outcome=()
# row WHAT COMMAND...: tries it, for the present column.
row() {
    local what=$1 key="$column|$1"
    shift
    [[ " ${rows[*]/#/|} " == *"|$what"* ]] || rows+=("$what")
    if "$@" >"$work/said" 2>&1; then
        outcome[$key]=ok
    else
        outcome[$key]=FAILED
        failures+=("$column: $what: $(tail -n 3 "$work/said" | tr '\n' ' ')")
        [ -z "$show" ] || { cat "$work/said"; tail -n 40 "$work/log"; } >&2
    fi
}
column() { column=$1; columns+=("$1"); }

# beside DAEMON PLUGINS: a rollout replaces the plugins first, and a node keeps an older daemon for a while.
beside() {
    local daemon=$1 plugins=$2 kind
    fresh_node
    row "railheadd offers its devices" start_daemon "$daemon"
    for kind in early late; do
        row "$kind: Allocate" allocate "$kind"
        row "$kind: ADD" add "$plugins" "$kind"
        row "$kind: CHECK" check "$plugins" "$kind"
    done
    row "railctl reads the other's state" read_state "$plugins"
    for kind in early late; do row "$kind: DEL" del "$plugins" "$kind"; done
    row "GC" gc "$plugins"
    row "nothing is left" nothing_left "$plugins"
}

# after FROM TO: an upgrade, or the way back, under running pods.
after() {
    local from=$1 to=$2 kind
    fresh_node
    row "the state is written" write_state "$from"
    row "railheadd offers its devices" start_daemon "$to"
    row "railctl reads the other's state" read_state "$to"
    row "a drained rail stays drained" is_drained "$to"
    for kind in early late; do row "$kind: CHECK" check "$to" "$kind"; done
    row "early: DEL" del "$to" early
    row "late: DEL" del "$to" late
    row "GC" gc "$to"
    row "nothing is left" nothing_left "$to"
    row "undrain, ADD, CHECK, DEL" again "$to"
}

print_table() {
    local what name key
    printf '%-36s' ''
    for name in "${columns[@]}"; do printf ' | %s' "$name"; done
    echo
    for what in "${rows[@]}"; do
        printf '%-36s' "$what"
        for name in "${columns[@]}"; do
            key="$name|$what"
            printf " | %-${#name}s" "${outcome[$key]:--}"
        done
        echo
    done
    [ ${#failures[@]} = 0 ] || printf '%s\n' '' "${failures[@]}"
}

column "old railheadd, new plugins" && beside "$old" "$new"
column "new railheadd, old plugins" && beside "$new" "$old"
column "old, then new" && after "$old" "$new"
column "new, then old" && after "$new" "$old"
print_table
[ ${#failures[@]} = 0 ]
