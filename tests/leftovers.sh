#!/bin/bash
# leftovers.sh - runs a command, and says what it has left behind: processes, mounts, network namespaces, files.
#
# usage: tests/leftovers.sh COMMAND [ARG...]
# The command has a TMPDIR of its own. As root it also has its own /tmp (or /srv), /dev/shm, /run/netns and mounts, so that what
# other users of the machine do meanwhile is not seen. Its processes are known by the variable RAILHEAD_RUN.
# Files of the checkout count that Git does not know or that have changed; build/ is meant to stay.
# What ends this script or the command by a signal ends all processes of the command.
# exit status: the command's; 1 if that is 0 and something is left. What is left is listed, and files are removed.
set -uo pipefail
case ${1:-} in '' | -h | --help) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//'; exit 2 ;; esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -z "${RAILHEAD_RUN:-}" ]; then
    folder=${TMPDIR:-/tmp}
    [[ $folder/ != /dev/shm/* ]] || folder=/tmp # it has its own
    RAILHEAD_RUN=$(mktemp -d "$folder/rh.XXXX") || exit 1
    export RAILHEAD_RUN TMPDIR=$RAILHEAD_RUN/tmp
    mkdir -m 1777 "$TMPDIR" && chmod 755 "$RAILHEAD_RUN"
    alone=()
    [ "$(id -u)" != 0 ] || alone=(unshare --mount --propagation private)
    exec "${alone[@]}" "$here/leftovers.sh" "$@"
fi
own=(/dev/shm /run/netns)
if [ "$(id -u)" = 0 ]; then
    mkdir -p "${own[@]}" && for folder in "${own[@]}"; do mount -t tmpfs -o mode=1777 tmpfs "$folder" || exit; done
    # By a short name, since paths of sockets have 108 bytes; by none that would cover what the command needs. In memory, since a tree of
    # sysfs for each of thousands of tests costs a disk more time than most of them take.
    for folder in /tmp /srv /media; do
        [ -d "$folder" ] && [[ ":$here:$HOME:${XDG_CACHE_HOME:-}:${CCACHE_DIR:-}:" != *:"$folder"/* ]] || continue
        mount -t tmpfs -o mode=1777 tmpfs "$folder" && export TMPDIR=$folder && break
    done
else
    own=()
fi

# variables_of PID: sets variables. A process that is just becoming another program shows none (environ_read in fs/proc/base.c).
variables_of() {
    local pause
    for pause in 1 2 3 4 5; do
        { mapfile -d '' variables <"/proc/$1/environ"; } 2>/dev/null || return
        [ ${#variables[@]} = 0 ] && [ -e "/proc/$1/exe" ] || return 0
        sleep "0.0$pause"
    done
}
# running: the command's processes that still run.
running() {
    local pid variables
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        [ "$pid" != $$ ] && [ "$pid" != $BASHPID ] && variables_of "$pid" || continue
        [[ " ${variables[*]} " != *" RAILHEAD_RUN=$RAILHEAD_RUN "* ]] || echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
    done
}
# look: sets left to what runs. A child may come after the look at its place, and its parent be gone before that at the parent's.
look() { left=$(running) && [ -z "$left" ] && left=$(running); }
mounts() { cut -d ' ' -f 5 /proc/self/mountinfo | sort | sed 's/^/mount: /'; }
checkout() { git -C "$here/.." status --porcelain 2>/dev/null | sed 's/^...//; s/^/of the checkout: /' | sort; }

mounts_before=$(mounts) checkout_before=$(checkout)
"$@" <&0 &
command=$!
trap 'kill "$command" 2>/dev/null' HUP INT TERM
# A signal ends the wait, too.
while :; do
    wait "$command"
    status=$?
    kill -0 "$command" 2>/dev/null || break
done
[ $status -lt 128 ] || running | sed 's/^process //; s/:.*//' | xargs -r kill 2>/dev/null
end=$((SECONDS + 10))
while look; [ -n "$left" ] && [ $SECONDS -lt $end ]; do sleep 0.2; done
left+=$(
    echo
    [ ${#own[@]} = 0 ] || comm -13 <(echo "$mounts_before") <(mounts)
    comm -13 <(echo "$checkout_before") <(checkout)
    find "$TMPDIR" "${own[@]}" -mindepth 1 -maxdepth 1 -printf 'file: %p\n'
)
[[ $TMPDIR = "$RAILHEAD_RUN"/* ]] || umount --lazy "$TMPDIR"
rm -rf --one-file-system "$RAILHEAD_RUN"
left=$(sed '/^$/d' <<<"$left")
[ -n "$left" ] || exit $status
printf 'leftovers.sh: the run has left behind:\n%s\n' "$left" >&2
[ $status != 0 ] || status=1
exit $status
