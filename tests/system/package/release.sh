#!/bin/bash
# release.sh - what manifests/release.sh makes: the same bytes twice, all files with their checksums, programs of both
# architectures that start, and programs that need no C library in an empty root.
#
# usage: release.sh      (long: a cross build)
# Needs root, for chroot and for the cross compiler, which it installs.
# exit status: 0 all held
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source=tests/setup.sh
. "$repo/tests/setup.sh"
fail() { echo "release.sh: $*" >&2; exit 1; }
if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64-static >/dev/null; then
    railhead_apt update && railhead_apt install --no-install-recommends g++-aarch64-linux-gnu qemu-user-static || exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for once in first again; do "$repo/manifests/release.sh" --dirty --out "$work/$once" >/dev/null || fail 'no release'; done
diff "$work/first/SHA256SUMS" "$work/again/SHA256SUMS" || fail 'two releases of one commit differ'
cd "$work/first"
sha256sum --quiet -c SHA256SUMS || fail 'checksums'
[ "$(cut -c67- SHA256SUMS | LC_ALL=C sort)" = "$(find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort)" ] || fail 'a file has no checksum'
version=$(sed -n 's/^project(railhead VERSION \([^ ]*\).*/\1/p' "$repo/CMakeLists.txt")
for pair in amd64:x86-64 arm64:aarch64; do
    name=${pair%%:*}
    mkdir -p "$work/$name"
    tar -xzf "railhead-$version-linux-$name.tar.gz" -C "$work/$name"
    for program in railhead railhead-ipam railheadd railctl railhead-nvml; do
        file "$work/$name/$program" | grep "${pair##*:}" >/dev/null || fail "$program: $(file "$work/$name/$program")"
    done
    [ "$(dpkg-deb -f "railhead_${version}_$name.deb" Architecture)" = "$name" ] || fail 'architecture of the .deb'
    dpkg-deb --fsys-tarfile "railhead_${version}_$name.deb" | tar -xO ./usr/bin/railctl | cmp - "$work/$name/railctl" || fail 'railctl of the .deb'
done
[ "$(rpm -qp --qf '%{ARCH}' "railhead-$version-1.aarch64.rpm")" = aarch64 ] || fail 'architecture of the .rpm'
for program in railhead railhead-ipam railheadd railctl; do
    said=$(qemu-aarch64-static "$work/arm64/$program" --version) || fail "$program does not start"
    [[ $said = *"$version"* ]] || fail "$program --version: $said"
done
qemu-aarch64-static "$work/arm64/railctl" config schema fabric >"$work/schema"
# The static programs are alone in this root.
chroot "$work/amd64" /railctl config schema fabric | cmp - "$work/schema" || fail 'railctl of the architectures prints another schema'
tar -xzf "railhead-$version-schemas.tar.gz" -O ./fabric.schema.json | cmp - "$work/schema" || fail 'the schema is not what railctl prints'
! tar -tvzf "railhead-$version.tgz" | grep '^l' || fail 'the chart has links'
tar -tzf "railhead-$version.tgz" | grep '^railhead/Chart.yaml$' >/dev/null || fail 'the chart'
tar -tzf "railhead-$version-man.tar.gz" | grep 'railctl.8.gz' >/dev/null || fail 'the manual pages'
echo "the release has $(wc -l <SHA256SUMS) files, twice the same"
