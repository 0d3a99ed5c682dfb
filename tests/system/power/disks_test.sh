#!/bin/bash
# disks_test.sh - railhead-ipam on a full and on a read-only disk: it says so, and what it gave stays given.
# usage: disks_test.sh RAILHEAD_IPAM
# Needs root: a tmpfs in a mount namespace of its own.
set -eu
plugin=$(realpath "$1")
if [ -z "${RAILHEAD_DISKS_INSIDE:-}" ]; then
    RAILHEAD_DISKS_INSIDE=1 exec unshare --mount --propagation private "$0" "$plugin"
fi
work=$(mktemp -d)
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/disk"
mount -t tmpfs -o size=1m tmpfs "$work/disk"

failures=0
check() { # WHAT PATTERN TEXT
    if [[ $3 =~ $2 ]]; then echo "ok    $1"; else echo "FAIL  $1: $3"; failures=$((failures + 1)); fi
}
config='{ "cniVersion": "1.0.0", "name": "disk", "type": "none",
  "ipam": { "type": "railhead-ipam", "subnet": "10.1.0.0/16", "reuseDelaySeconds": 3600 } }'
ipam() { # COMMAND CONTAINER: its output, then its status
    local status=0
    CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_IFNAME=eth1 CNI_NETNS=/proc/1/ns/net CNI_PATH=/tmp \
        RAILHEAD_ROOT=$work/disk "$plugin" <<<"$config" || status=$?
    echo "status $status"
}
addresses=$work/addresses
: >"$addresses"
check "an address" 'status 0' "$(ipam ADD pod0 | tee -a "$addresses")"

head -c 2000000 /dev/zero >"$work/disk/ballast" 2>/dev/null || true
given=1
# The store has room of its own for a while.
for ((n = 1; n < 2000; n++)); do
    answer=$(ipam ADD "pod$n")
    [[ $answer == *'status 0' ]] || break
    given=$((given + 1))
    echo "$answer" >>"$addresses"
done
check "a full disk is reported" 'No space left on device' "$answer"
check "... with its code" '"code": 105,' "$answer"
check "... and what to do" 'free space' "$answer"
check "... again" 'No space left' "$(ipam ADD again)"
rm "$work/disk/ballast"
answer=$(ipam ADD more)
check "there is room again" 'status 0' "$answer"
echo "$answer" >>"$addresses"
given=$((given + 1))
unique=$(grep -o '10\.1\.[0-9.]*/16' "$addresses" | sort -u | wc -l)
check "nothing was given twice" "^$given\$" "$unique"
check "the first one is still known" "$(grep -o '10\.1\.[0-9.]*/16' "$addresses" | head -1)" "$(ipam ADD pod0)"

mount -o remount,ro "$work/disk"
answer=$(ipam ADD late)
check "a read-only disk is reported" 'Read-only file system' "$answer"
check "... with its code" '"code": 104,' "$answer"
check "DEL tells it too, and is called again" 'Read-only file system' "$(ipam DEL pod0)"
mount -o remount,rw "$work/disk"
check "DEL when it can be written" 'status 0' "$(ipam DEL pod0)"
[ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }
