#!/bin/bash
# build-guest.sh - make the guest of the test bed (kernel and initramfs) from
# Debian packages, once, and print the directory that holds it.
#
# usage: build-guest.sh [--force] [--quiet] [--kernel SUITE] [--arch ARCHITECTURE]
#   --force   build anew even if the cache has it
#   --quiet   no progress on stderr
#   --kernel  of this suite of Debian (trixie-backports); bullseye has 5.10, the oldest that Railhead is for
#   --arch    amd64, or arm64: of this only kernel-image, initrd.cpio and release
# stdout: one line, the directory with kernel-image, initrd.cpio, release; runtime/, a
# container runtime for scripts that share it (run-guest.sh -s runtime=DIR/runtime); switch/,
# what a leaf switch runs, likewise; and system/, what makes a host with systemd and dpkg of
# the guest (run-guest.sh -I).
# exit status: 0, or 1 with a reason on stderr.
#
# Cache: ${XDG_CACHE_HOME:-$HOME/.cache}/railhead/guest/KEY (guest-arm64/KEY), where KEY is a hash of
# this script, the guest's init and the package lists: a change of any builds a
# new guest, and guests of other checkouts stay usable beside it.  Several callers
# may come at once: one builds, the others wait for it (flock), and a directory
# appears under its final name only when it is complete.
#
# Nothing of the guest is installed on this machine.  apt resolves the packages
# against an empty system in a state directory of its own; dpkg -x unpacks them.
# The guest's suite is independent of the host's.  The kernel has to be a 7.x for all but VFs, VLANs and addresses:
# before, soft RoCE (rdma_rxe) did not work outside the initial network namespace.
# Mirrors keep only the newest kernel, so the release is not pinned; the cache is
# what makes runs repeatable.
set -euo pipefail

readonly GUEST_SUITE=trixie
readonly PACKAGES=(busybox-static bash kmod iproute2 iputils-ping iputils-arping ethtool tcpdump
    pciutils ibverbs-providers ibverbs-utils perftest jq strace libstdc++6 libseccomp2 dmsetup e2fsprogs)
# Not in the initramfs, which every guest unpacks into its memory: only these programs.
readonly RUNTIME_PACKAGES=(containerd runc)
readonly RUNTIME_PROGRAMS=(usr/bin/containerd usr/bin/containerd-shim-runc-v2 usr/bin/ctr usr/sbin/runc)
readonly SWITCH_PACKAGES=(lldpd)
readonly SWITCH_PROGRAMS=(usr/sbin/lldpd usr/sbin/lldpcli)
# What a host has and no other guest needs: all of their libraries, and of their files these.
readonly SYSTEM_PACKAGES=(systemd dpkg tar)
readonly SYSTEM_FILES=(usr/bin/{systemctl,systemd-tmpfiles,dpkg,dpkg-deb,dpkg-query,dpkg-split,tar} usr/lib/x86_64-linux-gnu
    usr/lib/systemd/{systemd,systemd-executor} 'usr/lib/systemd/system/*.target' 'usr/lib/systemd/system/*.slice')
# Dependencies of maintainer scripts or of features nobody uses in the guest.
readonly SKIP='^(perl|perl-base|perl-modules-.*|libperl.*|debconf|adduser|passwd|dpkg|tar|libc-bin|init-system-helpers|debianutils|base-passwd|libpam-modules|libpam-modules-bin|libdb5.3.*|libsemanage.*|libsepol.*|login.defs|openssl-provider-legacy)$'
readonly MODULES=(virtio_pci virtio_console virtio_rng 9p 9pnet_virtio overlay virtio_net igb igbvf 8021q veth bridge dummy macvlan ipvlan
    vrf ib_core ib_uverbs rdma_rxe rdma_ucm rdma_cm ib_umad af_packet vfio vfio_pci vfio_iommu_type1
    sch_ingress sch_tbf cls_flower act_gact act_mirred nf_conntrack brd ext4 dm-log-writes dm-flakey)

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
force='' quiet='' KERNEL_SUITE=trixie-backports ARCH=amd64
while [ $# != 0 ]; do
    case $1 in
        --force) force=1 ;;
        --quiet) quiet=1 ;;
        --kernel) KERNEL_SUITE=${2:-} && shift ;;
        --arch) ARCH=${2:-} && shift ;;
        *) KERNEL_SUITE='' ;;
    esac
    [ -n "$KERNEL_SUITE" ] && [[ $ARCH =~ ^(amd64|arm64)$ ]] || { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 1; }
    shift
done
readonly KERNEL_SUITE ARCH

# shellcheck source=tests/setup.sh
. "$here/../../setup.sh"
say() { [ -n "$quiet" ] || echo "guest: $*" >&2; }
die() { echo "build-guest.sh: $*" >&2; exit 1; }

cache=${XDG_CACHE_HOME:-$HOME/.cache}/railhead/guest
[ "$ARCH" = amd64 ] || cache+=-$ARCH
key=$({ cat "$here/build-guest.sh" "$here/guest-init.sh" && echo "$KERNEL_SUITE"; } | sha256sum | cut -c1-16)
final=$cache/$key
complete() {
    [ -s "$final/initrd.cpio" ] && [ -s "$final/kernel-image" ] && [ -s "$final/release" ] || return
    [ "$ARCH" = arm64 ] || { [ -x "$final/runtime/runc" ] && [ -x "$final/switch/lldpd" ] && [ -x "$final/system/usr/lib/systemd/systemd" ]; }
}

if [ -z "$force" ] && complete; then
    touch "$final" 2>/dev/null || true    # what prune() keeps is what was used last; the cache may be another user's
    echo "$final"
    exit 0
fi
for tool in depmod:kmod modprobe:kmod cpio:cpio xz:xz-utils zstd:zstd busybox:busybox-static apt-get:apt dpkg:dpkg flock:util-linux; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${tool%%:*}" >/dev/null ||
        die "this machine lacks '${tool%%:*}': install the package ${tool##*:} (tests/setup.sh installs all)"
done
export PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || { railhead_why '' "$cache"; die "$(id -un) cannot write to $cache: set XDG_CACHE_HOME to a folder that it may write to"; }
exec 9>"$cache/.lock"
flock -n 9 || { say "another process builds it; waiting"; flock 9; }
if [ -z "$force" ] && complete; then echo "$final"; exit 0; fi

rm -rf "$cache"/.build-*                 # of builders that were killed: this one holds the lock
work=$(mktemp -d "$cache/.build-XXXXXX") || { railhead_why '' "$cache"; die "no folder can be made in $cache"; }
log=$work/log step='asking apt for its mirror'
# Whatever ends it, the step is named, and nothing is left but packages for the next time.
gave_up() {
    railhead_why "$(tail -n 100 "$log" 2>/dev/null || true)" "$work"
    echo "build-guest.sh: no guest was made: $step failed" >&2
    rm -rf "$work"
}
trap gave_up EXIT
trap 'exit 1' INT TERM

# quietly COMMAND...: its output goes to the log, which is shown if it fails.
quietly() {
    "$@" >>"$log" 2>&1 || { tail -20 "$log" >&2; die "failed: $*"; }
}

# ---- a private apt ---------------------------------------------------------------
# The lists and the packages themselves outlive a build: they are the slow part.
apt=$cache/apt
# Where this machine gets Debian from; the guest's packages come from there, too.
# shellcheck disable=SC2016 # apt's own placeholders
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN)' 'Created-By: Packages' |
    awk '$2 == "Debian" && $1 !~ /security/ { print $1; exit }')
[ -n "$mirror" ] || die "apt's lists name no Debian mirror: run 'apt-get update' first"
apt_opts=("${RAILHEAD_APT_OPTIONS[@]}" -q -o APT::Update::Error-Mode=any -o APT::Sandbox::User=root -o APT::Architecture="$ARCH" -o APT::Architectures="$ARCH" -o Acquire::Languages=none
    -o APT::Install-Recommends=0 -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=-
    -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts="$apt/none.d" -o Dir::State="$apt"
    -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache")

prepare_apt() {
    mkdir -p "$apt"/none.d "$apt"/lists/partial "$apt"/cache/archives/partial
    : >"$apt/status"
    local suite
    for suite in "$GUEST_SUITE" "$KERNEL_SUITE"; do
        echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
    done >"$apt/sources.list"
    quietly apt-get "${apt_opts[@]}" -o Acquire::Retries=1 update
}

# ---- kernel ----------------------------------------------------------------------
unpack_kernel() { # sets kernel, kroot
    kernel=$(apt-cache "${apt_opts[@]}" show "linux-image-$ARCH/$KERNEL_SUITE" |
        sed -n 's/^Depends: .*linux-image-\([^ ,]*\).*/\1/p' | head -1)
    [ -n "$kernel" ] || die "the mirror's $KERNEL_SUITE has no linux-image-$ARCH"
    say "kernel $kernel"
    # Up to 6.12 everything is in linux-image-*; later kernels are split.
    local packages=("linux-image-$kernel") deb
    # No grep -q at the end of a pipe: what writes into it would be killed, and so have failed.
    if [ -n "$(apt-cache "${apt_opts[@]}" show "linux-modules-$kernel" 2>/dev/null)" ]; then
        packages=("linux-binary-$kernel" "linux-modules-$kernel" "linux-base-$kernel")
    fi
    kroot=$work/kernel-packages
    mkdir -p "$kroot" "$work/debs"
    (cd "$work/debs" && quietly apt-get "${apt_opts[@]}" download "${packages[@]}")
    for deb in "$work"/debs/*.deb; do quietly dpkg -x "$deb" "$kroot"; done
    # One layout for both: usr/lib/modules.
    if [ -d "$kroot/lib/modules" ]; then mkdir -p "$kroot/usr/lib" && mv "$kroot/lib/modules" "$kroot/usr/lib/"; fi
    [ -d "$kroot/usr/lib/modules/$kernel/kernel" ] || die "the kernel package holds no modules of $kernel"
    depmod -b "$kroot/usr" "$kernel" 2>>"$log"
    local image=$kroot/usr/lib/modules/$kernel/vmlinuz
    [ -f "$image" ] || image=$kroot/boot/vmlinuz-$kernel
    extract_kernel "$image" "$work/kernel-image"
    echo "$kernel" >"$work/release"
}

# extract_kernel BZIMAGE TO: the ELF file inside, which QEMU starts by the PVH entry;
# it saves two seconds of emulated decompression in every boot.  A kernel compressed
# otherwise than by zstd is kept as it is: QEMU starts that, too.
extract_kernel() {
    local offset
    offset=$(LC_ALL=C grep -abom1 -P '\x28\xb5\x2f\xfd' "$1" | head -1 | cut -d: -f1) || true
    if [ -n "$offset" ]; then
        # zstd complains about what follows its stream; the ELF magic tells.
        tail -c "+$((offset + 1))" "$1" | zstd -qdc >"$2" 2>/dev/null || true
        [ "$(head -c 4 "$2" | tr -d '\0')" != $'\x7fELF' ] || return 0
    fi
    cp "$1" "$2"
}

# ---- userland ---------------------------------------------------------------------
# with_dependencies PACKAGE...: downloads them and what they need; "NAME FILE", a line each.
with_dependencies() {
    quietly apt-get "${apt_opts[@]}" -y --download-only install "$@"
    apt-get "${apt_opts[@]}" -s install "$@" | sed -n 's/^Inst \([^ :]*\)[^ ]* (\([^ ]*\) .*/\1 \2/p' | sed 's/:/%3a/g' |
        while read -r name version; do echo "$name" "$apt/cache/archives/${name}_${version}_"*.deb; done
}

# unpack_missing TREE SKIP PACKAGE...: these and what they need, without what the userland has, and without
# what they need whose names match SKIP.
unpack_missing() {
    local tree=$1 skip=$2 name deb
    shift 2
    mkdir -p "$tree"
    with_dependencies "$@" >"$work/packages"
    while read -r name deb; do
        [[ " ${userland[*]} " = *" $name "* ]] && continue
        [[ $name =~ $skip ]] && [[ " $* " != *" $name "* ]] && continue
        quietly dpkg -x "$deb" "$tree"
    done <"$work/packages"
    rm "$work/packages"
}

unpack_userland() { # sets root, userland
    say "userland: $GUEST_SUITE, ${#PACKAGES[@]} packages and what they need"
    root=$work/root
    mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{proc,sys,dev,run,tmp,etc,root,mnt/root} "$root"/var/{lib,log,tmp}
    local dir name deb
    for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$root/$dir"; done
    with_dependencies "${PACKAGES[@]}" >"$work/packages"
    while read -r name deb; do
        [[ $name =~ $SKIP ]] && continue
        userland+=("$name")
        quietly dpkg -x "$deb" "$root"
    done <"$work/packages"
    rm -rf "$root"/usr/share/{doc,man,locale,info,lintian,bug,perl*,zoneinfo,bash-completion,misc,zsh,initramfs-tools} \
        "$root"/usr/lib/*-linux-gnu/{gconv,perl*} "$root"/usr/lib/{udev,systemd,locale} "$root"/var/lib/dpkg
    # base-files ships directories and leaves the link to its maintainer script.
    rm -rf "$root/var/run"
    ln -s ../run "$root/var/run"
    local applet busybox=$root/usr/bin/busybox
    [ "$ARCH" = amd64 ] || busybox=busybox     # the guest's does not start here
    while read -r applet; do
        [ -e "$root/usr/bin/$applet" ] || [ -e "$root/usr/sbin/$applet" ] || ln -s busybox "$root/usr/bin/$applet"
    done < <("$busybox" --list)
    # busybox's sh would run its own applets (its poor "ip"!) whatever PATH says.
    ln -sf bash "$root/usr/bin/sh"
    ldconfig -r "$root" 2>>"$log" || true      # without it the loader searches longer
    echo 'root:x:0:0:root:/root:/bin/bash' >"$root/etc/passwd"
    echo 'root:x:0:' >"$root/etc/group"
    echo '127.0.0.1 localhost' >"$root/etc/hosts"
    install -m 755 "$here/guest-init.sh" "$root/init"
}

# What these programs need beyond libc is in the userland.
unpack_runtime() {
    say "runtime: ${RUNTIME_PACKAGES[*]}"
    local debs=$work/runtime-debs tree=$work/runtime-packages deb program
    mkdir -p "$debs" "$tree" "$work/runtime"
    (cd "$debs" && quietly apt-get "${apt_opts[@]}" download "${RUNTIME_PACKAGES[@]}")
    for deb in "$debs"/*.deb; do quietly dpkg -x "$deb" "$tree"; done
    for program in "${RUNTIME_PROGRAMS[@]}"; do mv "$tree/$program" "$work/runtime/"; done
    rm -rf "$debs" "$tree"
}

# Programs, and beside them what libraries the guest does not have: of lldpd's those of net-snmp, with Perl's.
unpack_switch() {
    say "switch: ${SWITCH_PACKAGES[*]}"
    local tree=$work/switch-packages program
    mkdir -p "$work/switch/lib"
    unpack_missing "$tree" '^$' "${SWITCH_PACKAGES[@]}"
    for program in "${SWITCH_PROGRAMS[@]}"; do mv "$tree/$program" "$work/switch/"; done
    find "$tree" -regex '.*/lib/x86_64-linux-gnu/lib[^/]*\.so\.[^/]*' -exec mv -t "$work/switch/lib" {} +
    rm -rf "$tree"
}

unpack_system() {
    say "system: ${SYSTEM_PACKAGES[*]}"
    local tree=$work/system-packages file
    mkdir -p "$work/system"
    unpack_missing "$tree" "$SKIP" "${SYSTEM_PACKAGES[@]}"
    # shellcheck disable=SC2086 # patterns
    for file in "${SYSTEM_FILES[@]}"; do (cd "$tree" && quietly cp -a --parents $file "$work/system/"); done
    rm -rf "$tree"
}

# Modules with what they need, uncompressed: decompressing under emulation costs
# seconds, and nothing ever stores the image.
copy_modules() {
    local from=$kroot/usr/lib/modules/$kernel to=$root/usr/lib/modules/$kernel module file target
    mkdir -p "$to"
    cp "$from"/modules.{builtin,builtin.modinfo,order} "$to/"
    for module in "${MODULES[@]}"; do
        modprobe -d "$kroot/usr" -S "$kernel" --show-depends "$module" 2>>"$log" ||
            die "kernel $kernel has no module '$module'"
    done | awk '$1 == "insmod" { print $2 }' | sort -u | while read -r file; do
        target=$to/${file#*"/lib/modules/$kernel/"}
        mkdir -p "${target%/*}"
        case $file in
            *.xz) xz -dc "$file" >"${target%.xz}" ;;
            *.zst) zstd -qdc "$file" >"${target%.zst}" ;;
            *) cp "$file" "$target" ;;
        esac
    done
    find "$to" -name '*.ko' -exec strip --strip-debug {} + 2>>"$log" || true
    depmod -b "$root/usr" "$kernel"
}

# Guests of older scripts, the least recently used first; two stay beside the new.
prune() {
    local old
    find "$cache" -mindepth 1 -maxdepth 1 -type d -name '[0-9a-f]*' ! -name apt ! -name "$key" -printf '%T@ %p\n' |
        sort -rn | tail -n +3 | cut -d' ' -f2- | while read -r old; do rm -rf "$old"; done
}

pack() { (cd "$root" && find . -print0 | LC_ALL=C sort -z | cpio --null -o -H newc --owner=0:0 --quiet) >"$work/initrd.cpio"; }

userland=() steps=(prepare_apt unpack_kernel unpack_userland)
[ "$ARCH" != amd64 ] || steps+=(unpack_runtime unpack_switch unpack_system)
for step in "${steps[@]}" copy_modules pack; do "$step"; done
rm -rf "$work/root" "$kroot" "$work/debs"
chmod 755 "$work"
[ -z "$force" ] || rm -rf "$final"
mv "$work" "$final"
trap - EXIT
prune
say "$(du -m "$final/initrd.cpio" | cut -f1) MB initramfs in $final"
echo "$final"
