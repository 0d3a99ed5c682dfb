#!/bin/bash
# package.sh - the .deb of the release build: installed, upgraded while pods have NICs, refused to be removed
# meanwhile, removed, purged; on a copy of this machine's file system that is thrown away.
#
# usage: package.sh [BUILD]   (build/release)
# Needs root: an overlay in a mount namespace of its own, and chroot. No service is started there.
# exit status: 0 all held
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
build=$(realpath "${1:-$repo/build/release}")

if [ "${PACKAGE_TEST_WORK:-}" = '' ]; then
    # The upper layer of an overlay has to be of a file system that can be one.
    work=$(mktemp -d -p /dev/shm)
    trap 'rm -rf "$work"' EXIT
    PACKAGE_TEST_WORK=$work unshare --mount --propagation private --pid --fork --kill-child "$here/package.sh" "$build"
    exit
fi
work=$PACKAGE_TEST_WORK
fail() { echo "package.sh: $*" >&2; exit 1; }
pack() { "$here/pack.sh" "$build" "$work/$1" "$1" || fail "no package"; } # VERSION

older=$(pack 0.0.1)
newer=$(pack 0.0.2)
[ "${older##*/}" = railhead_0.0.1_amd64.deb ] || fail "the package is called ${older##*/}"
for field in Package Version Architecture Maintainer Depends Section Description; do
    [ -n "$(dpkg-deb -f "$older" "$field")" ] || fail "no field $field"
done
dpkg-deb -f "$older" Depends | grep 'libc6 (>=' >/dev/null || fail "it does not depend on libc6: $(dpkg-deb -f "$older" Depends)"

# A machine like this one, and yet another.
mkdir "$work/upper" "$work/inner" "$work/machine"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/upper,workdir=$work/inner" "$work/machine"
machine=$work/machine
for at in run tmp; do mount -t tmpfs tmpfs "$machine/$at"; done
mount --rbind /dev "$machine/dev"
mount -t proc proc "$machine/proc"
on() { chroot "$machine" "$@"; }
cp "$older" "$newer" "$machine/tmp/"
files() { (cd "$machine" && find etc opt usr var/lib -xdev \( -path var/lib/dpkg -o -path usr/share/man/index.db -o -path var/cache \) -prune -o -print | sort); }

files >"$work/before"
on dpkg -i "/tmp/${older##*/}" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "not installed"; }
for file in usr/bin/railheadd usr/bin/railctl opt/cni/bin/railhead opt/cni/bin/railhead-ipam \
    usr/libexec/railhead/railhead-nvml; do
    [ "$(stat -c '%a %U' "$machine/$file")" = '755 root' ] || fail "$file: $(stat -c '%a %U' "$machine/$file")"
done
on railctl --version >/dev/null
on /usr/libexec/railhead/railhead-nvml --version >/dev/null
for file in usr/lib/tmpfiles.d/railhead.conf usr/share/doc/railhead/copyright \
    usr/share/doc/railhead/examples/fabric.json usr/share/man/man8/railctl.8.gz usr/share/man/man8/railheadd.8.gz \
    usr/share/railhead/fabric.schema.json usr/share/railhead/network.schema.json usr/share/railhead/topology.schema.json \
    usr/share/man/man8/railhead.8.gz usr/share/man/man8/railhead-ipam.8.gz; do
    [ -s "$machine/$file" ] || fail "no $file"
done
[ -s "$machine/lib/systemd/system/railheadd.service" ] || fail "no unit"
[ -d "$machine/etc/railhead" ] || fail "no /etc/railhead"
gzip -dc "$machine/usr/share/man/man8/railctl.8.gz" | grep -w 'nccl' >/dev/null || fail "railctl(8) does not know its commands"
on railctl config check /usr/share/doc/railhead/examples/fabric.json >/dev/null || fail "the example is no fabric"
if command -v systemd-analyze >/dev/null; then
    on systemd-tmpfiles --create railhead.conf
    [ -d "$machine/run/railhead" ] || fail "tmpfiles.d made no /run/railhead"
fi

# Shells complete with what was installed.
bash_says=$(on bash -c '. /usr/share/bash-completion/completions/railctl
    COMP_WORDS=(railctl nccl v) COMP_CWORD=2 && _railctl && echo "${COMPREPLY[*]}"
    COMP_WORDS=(railctl --help ipam --o) COMP_CWORD=3 && _railctl && echo "${COMPREPLY[*]:-none}"
    COMP_WORDS=(railctl topology --o) COMP_CWORD=2 && _railctl && echo "${COMPREPLY[*]}"')
[ "$bash_says" = $'verify\nnone\n--output' ] || fail "bash completes with: $bash_says"
on zsh -n /usr/share/zsh/vendor-completions/_railctl || fail "zsh does not read its completion"
fish_says=$(on fish --no-config -c 'source /usr/share/fish/vendor_completions.d/railctl.fish; complete -C "railctl nccl v"' | cut -f1)
[ "$fish_says" = verify ] || fail "fish completes with: $fish_says"

# An upgrade leaves state alone; a removal is refused while pods have NICs.
mkdir -p "$machine/run/railhead/attachments/c1" "$machine/var/lib/railhead/allocations"
echo '{}' >"$machine/run/railhead/attachments/c1/net@net1.json"
echo '{"version":1,"rails":[]}' >"$machine/etc/railhead/fabric.json"
on dpkg -i "/tmp/${newer##*/}" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "not upgraded"; }
[ "$(on dpkg-query -W -f '${Version}' railhead)" = 0.0.2 ] || fail "not upgraded"
[ -e "$machine/run/railhead/attachments/c1/net@net1.json" ] || fail "the upgrade took the journal"
if on dpkg --remove railhead >"$work/log" 2>&1; then fail "removed under running pods"; fi
grep -q '1 attachments of running pods need' "$work/log" || fail "refused without a reason: $(cat "$work/log")"
[ -x "$machine/opt/cni/bin/railhead" ] || fail "the plugin is gone, and its pods are not"
rm "$machine/run/railhead/attachments/c1/net@net1.json"
on dpkg --remove railhead >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "not removed"; }
[ ! -e "$machine/usr/bin/railheadd" ] || fail "railheadd is left"
[ -d "$machine/var/lib/railhead" ] || fail "removing is not purging"

# Purging deletes what nobody uses. Since the removal a DaemonSet may have made attachments, or may run.
state=(run/railhead/locks/rdma.lock run/cdi/railhead-0000:43:00.2.json var/lib/railhead/ipam/store)
entry=$machine/run/railhead/attachments/c2/net@net1.json
removed_then_used() {
    local file
    rm -rf "$machine/run/railhead/attachments"
    on dpkg -i "/tmp/${newer##*/}" >"$work/log" 2>&1 && on dpkg --remove railhead >>"$work/log" 2>&1 || { cat "$work/log" >&2; fail "not removed again"; }
    for file in "${state[@]}"; do mkdir -p "$machine/${file%/*}" && echo '{}' >"$machine/$file"; done
}
purge() { on dpkg --purge railhead >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "not purged"; }; }
kept() { # TEXT
    local file
    purge
    grep -qF "$1" "$work/log" || fail "kept without a reason: no '$1' in $(cat "$work/log")"
    for file in "${state[@]}"; do [ -e "$machine/$file" ] || fail "purged, although $1: $file"; done
}
removed_then_used
mkdir -p "${entry%/*}" && echo '{}' >"$entry"
kept '1 attachments of running pods need them'
[ -e "$entry" ] || fail "purging took the journal"
removed_then_used
# Of a DaemonSet: a process of that name.
cp /bin/sleep "$work/railheadd"
"$work/railheadd" infinity &
until grep -qsx railheadd "$machine/proc/$!/comm"; do sleep 0.05; done
kept "a railheadd that is not this package's uses them"
kill "$!" && { wait "$!" || true; }
removed_then_used
mkdir -p "${entry%/*}" && echo '{}' >"$entry"
touch "$machine/run/railhead/remove-anyway"
purge
for file in "${state[@]}" run/railhead; do [ ! -e "$machine/$file" ] || fail "not purged: $file"; done
[ -e "$machine/etc/railhead/fabric.json" ] || fail "the administrator's file is gone"
rm -r "$machine/etc/railhead"
files >"$work/after"
# What other packages' triggers write is theirs.
left=$(comm -13 "$work/before" "$work/after" | grep -Ev '^(opt|opt/cni|opt/cni/bin)$|mandb|man-db|deb-systemd-helper' || true)
[ -z "$left" ] || fail "left behind: $left"
echo "the package was installed, upgraded, removed and purged: $(stat -c %s "$older") bytes"
