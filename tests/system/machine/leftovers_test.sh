#!/bin/bash
# leftovers_test.sh - tests/leftovers.sh finds what a command leaves behind, and nothing of others.
# Needs root. exit status: 0 all held
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-left.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset RAILHEAD_RUN
failed=0
# In a checkout of its own.
mkdir "$work/tests" && cp "$here/../../leftovers.sh" "$work/tests/" && git -C "$work" init -q && git -C "$work" add tests
git -C "$work" -c user.name=test -c user.email=test@localhost commit -q -m test

# expect STATUS TEXT COMMAND: it ends with that status, and TEXT is among what is left; nothing is, if empty.
expect() {
    local status=0
    said=$("$work/tests/leftovers.sh" bash -c "$3" "$work" 2>&1) || status=$?
    if [ $status = "$1" ] && [[ ${said:-nothing} = *"${2:-nothing}"* ]]; then return; fi
    echo "leftovers_test.sh: $3: exit status $status instead of $1, without '${2:-nothing}': $said" >&2
    failed=1
}
sleep 300 &
other=$!
expect 0 '' 'f=$(mktemp) && mount -t tmpfs tmpfs /mnt && umount /mnt && ip netns add x && ip netns del x && rm "$f"'
expect 3 '' 'exit 3'
expect 1 'sleep 301' 'setsid sleep 301 >/dev/null 2>&1 & echo $! >"$0/.git/pid"'
kill "$(cat "$work/.git/pid")"
# One that becomes another program all the time, until its text is gone.
echo 'exec bash "$0"' >"$work/.git/again"
expect 1 '.git/again' 'setsid bash "$0/.git/again" >/dev/null 2>&1 & echo $! >"$0/.git/pid"'
kill "$(cat "$work/.git/pid")"
expect 4 'file: ' 'mktemp >/dev/null; exit 4'
expect 1 'file: /dev/shm/planted' 'touch /dev/shm/planted'
expect 1 'mount: /mnt' 'mount -t tmpfs tmpfs /mnt'
expect 1 'mount: /run/netns/planted' 'ip netns add planted'
expect 1 'of the checkout: planted' 'touch "$0/planted"'
rm "$work/planted"
expect 0 '' true
# Below a folder that the run has of its own.
TMPDIR=/dev/shm expect 0 '' true

# Stopped, it stops what runs.
"$work/tests/leftovers.sh" bash -c 'sleep 302; true' >"$work/.git/said" 2>&1 &
stopped=$!
end=$((SECONDS + 60))
until [ -n "$(pgrep -f '^sleep 302$')" ] || [ $SECONDS -ge $end ]; do sleep 0.1; done
kill $stopped
status=0
wait $stopped || status=$?
if [ $status != 143 ] || grep 'left behind' "$work/.git/said" || pgrep -f '^sleep 302$'; then
    echo "leftovers_test.sh: stopped, it ends with exit status $status and says: $(cat "$work/.git/said")" >&2
    failed=1
fi
kill $other
exit $failed
