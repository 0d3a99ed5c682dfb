#!/bin/bash
# rpm.sh - the .rpm of the release build: reproducible, and installed, upgraded, refused to be removed while pods have NICs, and
# removed, in an empty root with busybox's shell.
#
# usage: rpm.sh [BUILD]   (build/release)
# Needs root, for chroot. No service is started there.
# exit status: 0 all held
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
build=$(realpath "${1:-$repo/build/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "rpm.sh: $*" >&2; exit 1; }
export SOURCE_DATE_EPOCH=1700000000
pack() { "$here/pack.sh" "$build" "$work/$1" "$2" RPM || fail 'no package'; } # DIRECTORY VERSION

older=$(pack older 0.0.1)
newer=$(pack newer 0.0.2)
cmp "$older" "$(pack again 0.0.1)" || fail 'two packages of one build differ'
case ${older##*/} in railhead-0.0.1-1.*.rpm) ;; *) fail "the package is called ${older##*/}" ;; esac
needs=$(rpm -qp --requires "$older" | grep -v '^rpmlib' || true)
grep -q '^libc.so.6' <<<"$needs" || fail "it does not need the C library: $needs"
! grep -vE '^(libc\.so\.6|ld-linux|rtld|/bin/sh|config\()' <<<"$needs" || fail "it needs more than the C library and a shell: $needs"

root=$work/root
mkdir -p "$root"/{bin,run}
cp /bin/busybox "$root/bin/"
chroot "$root" /bin/busybox --install -s /bin
rpm() { command rpm --root "$root" --dbpath /var/lib/rpm "$@" >"$work/log" 2>&1; }
files() { (cd "$root" && find . -xdev -path ./var/lib/rpm -prune -o -print | LC_ALL=C sort); }
rpm --initdb || fail "no database: $(cat "$work/log")"
files >"$work/before"
# An empty root has no package that provides the C library.
rpm -i --nodeps "$older" || fail "not installed: $(cat "$work/log")"
for file in usr/bin/{railheadd,railctl} opt/cni/bin/{railhead,railhead-ipam} usr/libexec/railhead/railhead-nvml; do
    [ "$(stat -c '%a %U' "$root/$file")" = '755 root' ] || fail "$file: $(stat -c '%a %U' "$root/$file")"
done
for file in usr/lib/systemd/system/railheadd.service usr/lib/tmpfiles.d/railhead.conf usr/share/doc/railhead/copyright \
    usr/share/railhead/fabric.schema.json usr/share/man/man8/railctl.8.gz usr/share/man/man8/railhead-ipam.8.gz; do
    [ -s "$root/$file" ] || fail "no $file"
done
[ -d "$root/etc/railhead" ] || fail 'no /etc/railhead'
# Static: it runs where there is no C library at all.
chroot "$root" /usr/bin/railctl config schema fabric | cmp - "$root/usr/share/railhead/fabric.schema.json" || fail 'railctl does not run'

mkdir -p "$root"/run/railhead/attachments/c1 "$root"/var/lib/railhead/allocations
echo '{}' >"$root/run/railhead/attachments/c1/net@net1.json"
echo '{"version":1,"rails":[]}' >"$root/etc/railhead/fabric.json"
rpm -U --nodeps "$newer" || fail "not upgraded: $(cat "$work/log")"
[ "$(command rpm --root "$root" --dbpath /var/lib/rpm -q --qf '%{VERSION}' railhead)" = 0.0.2 ] || fail 'not upgraded'
[ -e "$root/run/railhead/attachments/c1/net@net1.json" ] || fail 'the upgrade took the journal'
! rpm -e railhead || fail 'removed under running pods'
grep -q '1 attachments of running pods need' "$work/log" || fail "refused without a reason: $(cat "$work/log")"
[ -x "$root/opt/cni/bin/railhead" ] || fail 'the plugin is gone, and its pods are not'
touch "$root/run/railhead/remove-anyway"
echo '{}' >"$root/var/lib/railhead/allocations/device.json"
rpm -e railhead || fail "not removed: $(cat "$work/log")"
[ -e "$root/etc/railhead/fabric.json" ] && [ -e "$root/var/lib/railhead/allocations/device.json" ] &&
    [ -e "$root/run/railhead/attachments/c1/net@net1.json" ] || fail 'what the administrator or railheadd wrote is gone'
rm -r "$root"/{etc/railhead,run/railhead,var/lib/railhead}
files >"$work/after"
left=$(comm -13 "$work/before" "$work/after" | grep -Ev '^\./(etc|opt|usr|var)(/|$)' || true)
left+=$(cd "$root" && find . -path ./var/lib/rpm -prune -o -type f -newer "$work/before" -print)
[ -z "$left" ] || fail "left behind: $left"
echo "the package was installed, upgraded and removed: $(stat -c %s "$older") bytes"
