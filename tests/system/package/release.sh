#!/bin/bash
# release.sh - what manifests/release.sh makes: the same bytes twice, all files with their checksums, programs of both
# architectures that start, also on Debian 11's C library, images of both with one index, and one bill of materials of all.
#
# Unit tests of what depends on the machine run on arm64, too: char's sign, layouts of files, atomics. The programs attach
# pods in a guest of arm64.
#
# usage: release.sh      (long: a cross build)
# Needs root, for chroot and for what it installs.
# exit status: 0 all held
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source=tests/setup.sh
. "$repo/tests/setup.sh"
fail() { echo "release.sh: $*" >&2; exit 1; }
if ! command -v qemu-aarch64-static >/dev/null; then
    railhead_apt update && railhead_apt install --no-install-recommends qemu-user-static || exit
fi
if ! RAILHEAD_QEMU=qemu-system-arm railhead_has_qemu; then
    railhead_backports && railhead_apt install --no-install-recommends -t bookworm-backports qemu-system-arm || exit
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
# starts ROOT DIRECTORY: the static programs do. Without a config railctl doctor reports errors, and nothing else.
starts() {
    local status=0
    for program in railctl railheadd railhead railhead-ipam; do
        said=$(chroot "$1" "$2/$program" --version </dev/null) || fail "$program does not start in $1"
        [[ $said = *"$version"* ]] || fail "$program --version in $1: $said"
    done
    chroot "$1" "$2/railctl" doctor -o json >"$work/doctor" 2>"$work/errors" || status=$?
    { [ "$status" -le 1 ] && jq -e '.checks | length > 0' "$work/doctor" >/dev/null; } || fail "railctl doctor in $1: $status: $(cat "$work/errors")"
}
# They are alone in this root.
starts "$work/amd64" ''
chroot "$work/amd64" /railctl config schema fabric | cmp - "$work/schema" || fail 'railctl of the architectures prints another schema'
mirror=$(railhead_targets | awk '$2 == "bookworm" { print $1; exit }')
older='without Debian 11, which the mirror lacks'
if /usr/lib/apt/apt-helper download-file "${mirror}dists/bullseye/InRelease" "$work/InRelease" >/dev/null 2>&1; then
    older='with Debian 11'
    cp -a "$("$repo/manifests/package/sysroot.sh" --suite bullseye amd64 libc6 bash coreutils)" "$work/bullseye"
    mkdir "$work/bullseye/railhead"
    cp "$work/amd64"/* "$work/bullseye/railhead"
    chroot "$work/bullseye" /bin/bash -c '/lib/x86_64-linux-gnu/libc.so.6; ls /railhead' | grep 'GLIBC 2.31' >/dev/null || fail 'no root of Debian 11'
    starts "$work/bullseye" /railhead
fi

# Images: one index, a manifest for each architecture, whose programs are those of the release.
for image in railhead-image railhead-tools-image; do
    mkdir "$work/$image"
    tar -xf "$image-$version.tar" -C "$work/$image"
    blobs=$work/$image/blobs/sha256
    for blob in "$blobs"/*; do [ "$(sha256sum <"$blob" | cut -d' ' -f1)" = "${blob##*/}" ] || fail "$image: $blob"; done
    index=$(jq -r '.manifests | select(length == 1)[0] | select(.mediaType | endswith("image.index.v1+json")).digest' "$work/$image/index.json")
    [ "$(jq -c '[.manifests[].platform | .os, .architecture]' "$blobs/${index#*:}")" = '["linux","amd64","linux","arm64"]' ] || fail "$image: platforms"
    for name in amd64 arm64; do
        root=$work/$image-$name
        mkdir "$root"
        manifest=$(jq -r --arg name "$name" '.manifests[] | select(.platform.architecture == $name).digest' "$blobs/${index#*:}")
        config=$(jq -r .config.digest "$blobs/${manifest#*:}")
        [ "$(jq -r .architecture "$blobs/${config#*:}")" = "$name" ] || fail "$image: the config of $name"
        for layer in $(jq -r '.layers[].digest' "$blobs/${manifest#*:}"); do tar -xzf "$blobs/${layer#*:}" -C "$root"; done
        cmp "$work/$name/railctl" "$root/usr/bin/railctl" || fail "$image: railctl of $name"
        [ -z "$(find "$root" -xtype l ! -lname '*run')$(find "$root" -perm /6000)" ] || fail "$image of $name: links to nothing, or setuid files"
    done
done
qemu-aarch64-static -L "$work/railhead-image-arm64" "$work/railhead-image-arm64/usr/bin/railhead-nvml" --version >/dev/null ||
    fail 'railhead-nvml of arm64 does not start with the C library of its image'
[ "$(qemu-aarch64-static -L "$work/railhead-tools-image-arm64" "$work/railhead-tools-image-arm64/usr/bin/ib_write_bw" --version)" = \
    "$(chroot "$work/railhead-tools-image-amd64" /bin/sh -c 'ls /etc/libibverbs.d/mlx5.driver >&2 && ib_write_bw --version' 2>"$work/errors")" ] || fail 'ib_write_bw of the images'
for name in amd64 arm64; do
    ls "$work/railhead-tools-image-$name"/usr/lib/*/libibverbs/libmlx5-*.so >/dev/null || fail "the tools of $name lack the verbs providers"
done

# The bill of materials has every file as it is, and what is linked, for both.
bill=railhead-$version.spdx.json
while read -r sum file; do
    [ "$file" = "$bill" ] || jq -e --arg sum "$sum" --arg file "$file" \
        '.packages[] | select(.packageFileName == $file).checksums[0].checksumValue == $sum' "$bill" >/dev/null || fail "the bill of materials lacks $file"
done <SHA256SUMS
for package in libc6 libc6-dev libgrpc++-dev libssl-dev libnl-3-dev perftest ibverbs-providers; do
    for name in amd64 arm64; do
        jq -e --arg package "$package" --arg purl "arch=$name&" '.packages[] | select(.name == $package).externalRefs[].referenceLocator |
            select(contains($purl))' "$bill" >/dev/null || fail "the bill of materials lacks $package of $name"
    done
done
jq -e '([.packages[].SPDXID] | length == (unique | length)) and ([.packages[].SPDXID] as $ids | [.relationships[].relatedSpdxElement] |
    all(. as $id | $ids | index($id)))' "$bill" >/dev/null || fail 'the bill of materials names a package twice, or one that is not there'

# Libraries of the other architecture have the security fixes that apt knows for this one.
sysroot=$("$repo/manifests/package/sysroot.sh")
for package in libssl3 libc6 zlib1g; do
    has=$(dpkg-query --admindir "$sysroot/var/lib/dpkg" -Wf '${Version}' "$package")
    newest=$(apt-cache madison "$package" | awk -F' *[|] *' '$3 ~ /bookworm(-updates|-security)?\// { print $2 }' | while read -r version; do
        if dpkg --compare-versions "$version" gt "${most:-0}"; then most=$version && echo "$most"; fi
    done | tail -1)
    dpkg --compare-versions "$has" ge "$newest" || fail "the sysroot has $package $has; $newest is out"
done

# A directory of other things is left alone.
mkdir "$work/other" && touch "$work/other/mine"
! "$repo/manifests/release.sh" --dirty --out "$work/other" >"$work/log" 2>&1 || fail 'a release replaces a directory of other things'
{ [ -e "$work/other/mine" ] && grep -q 'not empty' "$work/log"; } || fail "$(cat "$work/log")"

# The guest of arm64, with unit tests in the tree of its programs.
tests=(unit_base unit_json unit_fabric unit_ipam_store unit_state unit_records)
quietly() { "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; fail "$*"; }; }
quietly cmake -S "$repo" -B "$repo/build/arm64" -DRAILHEAD_BUILD_TESTS=ON
quietly cmake --build "$repo/build/arm64" --target "${tests[@]}"
quietly "$repo/tests/support/vm/run-guest.sh" -A arm64 -T leaves -b "$repo/build/arm64" -t 1800 "$repo/tests/guest/arm64.sh" "${tests[@]}"
quietly cmake -S "$repo" -B "$repo/build/arm64" -DRAILHEAD_BUILD_TESTS=OFF

tar -xzf "railhead-$version-schemas.tar.gz" -O ./fabric.schema.json | cmp - "$work/schema" || fail 'the schema is not what railctl prints'
! tar -tvzf "railhead-$version.tgz" | grep '^l' || fail 'the chart has links'
tar -tzf "railhead-$version.tgz" | grep '^railhead/Chart.yaml$' >/dev/null || fail 'the chart'
tar -tzf "railhead-$version-man.tar.gz" | grep 'railctl.8.gz' >/dev/null || fail 'the manual pages'
echo "the release has $(wc -l <SHA256SUMS) files, twice the same; programs started $older"
