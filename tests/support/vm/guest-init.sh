#!/bin/bash
# guest-init.sh - process 1 of the guest, installed as /init in the initramfs.
# Mounts the file systems, loads the drivers, mounts what the host shares, runs
# /mnt/job/run, writes its exit status to /mnt/job/rc and powers off.
#   /mnt/job    the job directory of run-guest.sh, writable
#   /mnt/NAME   every share of run-guest.sh, read-only, but for "sync"
# With guest.init=systemd it becomes systemd, and /mnt/job/run is a service.
#
# Before anything else the root file system is bind-mounted over itself:
# pivot_root, and so any container runtime, does not work on the initramfs proper.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C
if [ "${1:-}" != again ]; then
    mount --bind / /mnt/root && cd /mnt/root && mount --move . / && exec chroot . /init again
fi
mount -t proc -o nosuid,noexec proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -sfn /proc/self/fd /dev/fd
# Tests name the addresses that a new store gives first.
echo 00000000-0000-4000-8000-000000000000 >/run/uuid && mount --bind /run/uuid /proc/sys/kernel/random/uuid
mkdir -p /run/netns /var/lib/cni /mnt/job

read -r cmdline </proc/cmdline
shares='' name=guest init=''
for word in $cmdline; do
    case $word in
        guest.name=*) name=${word#*=} ;;
        guest.shares=*) shares=${word#*=} ;;
        guest.init=*) init=${word#*=} ;;
    esac
done
echo "$name" >/proc/sys/kernel/hostname
ip link set lo up
# There is no udev: the drivers of the PFs, and of the VFs to come, are named here.
modprobe -a virtio_pci virtio_console virtio_rng 9pnet_virtio 9p virtio_net igb igbvf 8021q 2>/dev/null
o=trans=virtio,version=9p2000.L,msize=524288
mount -t 9p -o "$o,cache=none" job /mnt/job || { echo "guest: no job directory"; poweroff -f; }
# While this goes on, the guest has not stopped altogether (run-guest.sh).
alive() {
    local up never
    exec {never}<> <(:)
    while read -r up _ </proc/uptime; do
        echo "$up" >/mnt/job/alive
        read -rt 5 -u "$never"
    done
}
alive &
IFS=,
for share in $shares; do
    mkdir -p "/mnt/$share"
    # Shares do not change while the guest runs, so it may cache them; "sync" is
    # where guests meet and has to be read anew every time.
    case $share in
        sync) mount -t 9p -o "$o,cache=none" "$share" "/mnt/$share" ;;
        *) mount -t 9p -o "$o,cache=loose,ro" "$share" "/mnt/$share" ;;
    esac || { echo "guest: cannot mount share $share"; poweroff -f; }
done
unset IFS

# Names by address: 52:54:00:00:NODE:P is pfP, 52:54:00:01:NODE:P is leafP.
for dev in /sys/class/net/*; do
    read -r mac <"$dev/address"
    case $mac in
        52:54:00:00:*) ip link set "${dev##*/}" name "pf$((0x${mac##*:}))" ;;
        52:54:00:01:*) ip link set "${dev##*/}" name "leaf$((0x${mac##*:}))" ;;
    esac
done
read -r uptime _ </proc/uptime
echo "$uptime" >/mnt/job/uptime

# The script talks to the virtio console, the kernel to the serial one.
cat >/run/job <<'END'
cd /root || poweroff -f
setsid bash -c 'exec /mnt/job/run </dev/null >/dev/hvc0 2>&1'
echo $? >/mnt/job/rc.tmp && mv /mnt/job/rc.tmp /mnt/job/rc
sync
poweroff -f
END
[ "$init" = systemd ] || exec bash /run/job

# cpio replaces what is there; cp would write through links to busybox.
(cd /mnt/system && find . -depth | cpio -o -H newc 2>/dev/null) | (cd / && cpio -idu --quiet)
ldconfig 2>/dev/null
mkdir -p /var/lib/dpkg/{info,updates,triggers} /etc/systemd/system /var/tmp
: >>/var/lib/dpkg/status
# A first boot would make this up.
echo 0123456789abcdef0123456789abcdef >/etc/machine-id
cat >/etc/systemd/system/job.service <<'END'
[Service]
ExecStart=/usr/bin/bash /run/job
Environment=HOME=/root LANG=C
TasksMax=infinity
StandardOutput=file:/dev/ttyS0
END
exec /usr/lib/systemd/systemd --system --unit=job.service --log-target=console --log-level=notice
