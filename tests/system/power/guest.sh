#!/bin/bash
# guest.sh - the part of tests/system/power that runs in a guest of tests/support/vm: railhead-ipam works on a
# disk whose every write is logged by the kernel, and power_loss replays the log.
# usage: guest.sh OPERATIONS
set -eu
die() { echo "tests/system/power/guest.sh: $*" >&2; exit 2; }
operations=$1
bin=/tmp/bin
mkdir -p "$bin" /tmp/disk /tmp/image/mount
cp "$BUILD"/bin/{railhead-ipam,power_loss} "$bin/"
export DM_DISABLE_UDEV=1
megabytes=10
modprobe brd rd_nr=3 rd_size=262144 || die "no RAM disks"
modprobe -a ext4 dm-log-writes || die "no modules"

dmsetup create written --table "0 $((megabytes * 2048)) log-writes /dev/ram0 /dev/ram1" || die "no device that logs"
mkfs.ext4 -q -J size=4 /dev/mapper/written || die "no file system"
mount -t ext4 /dev/mapper/written /tmp/disk || die "cannot mount it"
mark() { dmsetup message written 0 mark "$1"; }
sync
mark 0

# Two links in one call: all or nothing.
cat >/tmp/config.json <<'JSON'
{ "cniVersion": "1.0.0", "name": "power", "type": "none", "ipam": { "type": "railhead-ipam", "links": [
  { "ifname": "rail0", "subnet": "10.1.0.0/24", "gateway": "10.1.0.1", "reuseDelaySeconds": 3600 },
  { "ifname": "rail1", "subnet": "10.2.0.0/24", "gateway": "10.2.0.1", "reuseDelaySeconds": 3600 } ] } }
JSON
ipam() { # COMMAND CONTAINER
    CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_IFNAME=eth1 CNI_NETNS=/proc/1/ns/net CNI_PATH=$bin RAILHEAD_ROOT=/tmp/disk \
        "$bin/railhead-ipam" </tmp/config.json
}
for ((n = 1; n <= operations; n++)); do
    if ((n % 3 == 0)); then
        ipam DEL "pod$((n - 2))" >/dev/null || die "DEL failed"
        echo "$n DEL pod$((n - 2))"
    else
        answer=$(ipam ADD "pod$n") || die "ADD failed: $answer"
        echo "$n ADD pod$n $(jq -r '[.ips[].address | split("/")[0]] | join(" ")' <<<"$answer")"
    fi >>/tmp/operations
    mark "$n"
done
umount /tmp/disk
dmsetup remove written

replay() {
    "$bin/power_loss" --log /dev/ram1 --operations /tmp/operations --size $((megabytes << 20)) --device /dev/ram2 \
        --mount /tmp/image/mount --plugins "$bin" --config /tmp/config.json "$@"
}
replay || exit
# A check that cannot fail is none: answers that came before the disk had it have to be found.
echo "planted: answers that came too early"
status=0
replay --forget 2 >/tmp/planted || status=$?
[ "$status" = 1 ] || die "they were not found: $(tail -1 /tmp/planted)"
tail -1 /tmp/planted
