#!/bin/bash
# image.sh - the image of the DaemonSet: what is in it, that its programs run with nothing else, that it is
# the same when it is built again, and that its bill of materials names what is linked.
#
# usage: image.sh [BUILD]   (build/release)
# Needs root for chroot.
# exit status: 0 all held
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
build=${1:-$repo/build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "image.sh: $*" >&2; exit 1; }

"$repo/manifests/image/build.py" --build "$build" --out "$work/one.tar" >"$work/one.json"
"$repo/manifests/image/build.py" --build "$build" --out "$work/two.tar" >"$work/two.json"
cmp "$work/one.tar" "$work/two.tar" || fail "built twice, the archives differ"
digest=$(jq -r .digest "$work/one.json")
[ "$(jq .bytes "$work/one.json")" -lt $((40 << 20)) ] || fail "larger than 40 MiB"

# An OCI layout: every blob is what its name says, and the index leads to the layers.
mkdir "$work/layout" "$work/root"
tar -xf "$work/one.tar" -C "$work/layout"
cd "$work/layout"
for blob in blobs/sha256/*; do
    [ "$(sha256sum <"$blob" | cut -d' ' -f1)" = "${blob##*/}" ] || fail "$blob is not what it is called"
done
blob() { echo "blobs/sha256/${1#sha256:}"; }
[ "$(jq -r '.manifests[0].digest' index.json)" = "$digest" ] || fail "the index names another manifest"
manifest=$(blob "$digest")
config=$(blob "$(jq -r .config.digest "$manifest")")
version=$(jq -r '.config.Labels["org.opencontainers.image.version"]' "$config")
[ "$("$build/bin/railheadd" --version)" = "railheadd $version" ] || fail "the label says $version"
mapfile -t diffs < <(jq -r '.rootfs.diff_ids[]' "$config")
at=0
while read -r layer; do
    [ "sha256:$(gzip -dc "$(blob "$layer")" | sha256sum | cut -d' ' -f1)" = "${diffs[at]}" ] || fail "diff_ids[$at]"
    tar -xzf "$(blob "$layer")" -C "$work/root"
    at=$((at + 1))
done < <(jq -r '.layers[].digest' "$manifest")
[ "$at" = "${#diffs[@]}" ] || fail "$at layers, ${#diffs[@]} diff_ids"

# The programs run with what is in the image.
for program in railhead railhead-ipam railheadd railctl railhead-nvml; do
    cmp "$build/bin/$program" "$work/root/usr/bin/$program" || fail "$program is another"
    if [ "$program" = railhead ] || [ "$program" = railhead-ipam ]; then
        answer=$(CNI_COMMAND=VERSION chroot "$work/root" "/usr/bin/$program" <<<'{"cniVersion":"1.0.0"}') || fail "$program: $answer"
    else
        chroot "$work/root" "/usr/bin/$program" --version >/dev/null || fail "$program does not run"
    fi
done
# On a host of any C library, too, all but one.
mkdir "$work/bare"
for program in railheadd railctl; do
    cp "$work/root/usr/bin/$program" "$work/bare/"
    chroot "$work/bare" "/$program" --version >/dev/null || fail "$program needs a library"
done
[ "$(readlink "$work/root/var/run")" = ../run ] || fail "/var/run is no link to /run"
[ -z "$(find "$work/root" -perm /6000)" ] || fail "setuid files"

# What is linked is named: the libraries that we know of, and no package without a version.
bill=$work/root/usr/share/doc/railhead/sbom.spdx.json
cmp "$bill" "$work/one.tar.spdx.json" || fail "the bill of materials in the image is another"
for package in libc6 libgrpc++-dev libprotobuf-dev liblmdb-dev libnl-3-dev libibverbs-dev nlohmann-json3-dev libssl-dev; do
    jq -e --arg name "$package" '.packages[] | select(.name == $name) | .versionInfo | length > 0' "$bill" >/dev/null ||
        fail "the bill of materials lacks $package"
done
jq -e '[.packages[].SPDXID] as $ids | [.relationships[].relatedSpdxElement] | all(. as $id | $ids | index($id))' "$bill" >/dev/null ||
    fail "a relationship to a package that is not there"

# No base: our programs, the C library, and nothing that would be updated by itself.
others=$(find "$work/root" -type f ! -path '*/usr/share/doc/libc6/copyright' ! -path '*/usr/share/doc/railhead/*' -printf '%P\n' | sort | tr '\n' ' ')
[ "$others" = "etc/group etc/passwd usr/bin/railctl usr/bin/railhead usr/bin/railhead-ipam usr/bin/railhead-nvml usr/bin/railheadd \
usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 usr/lib/x86_64-linux-gnu/libc.so.6 " ] || fail "the image has other files: $others"
[ "$(jq -c .config.Entrypoint "$config")" = '["/usr/bin/railheadd"]' ] || fail "another entry point"

# Sources without a repository, as in an archive.
GIT_DIR=$work/none SOURCE_DATE_EPOCH=1700000000 "$repo/manifests/image/build.py" --build "$build" --out "$work/archive.tar" >"$work/archive.json" ||
    fail "no image of sources without a repository"
jq -e '.creationInfo.created == "2023-11-14T22:13:20Z" and (.packages[] | select(.name == "railhead") | .sourceInfo == "commit unknown")' \
    "$work/archive.tar.spdx.json" >/dev/null || fail "the bill of materials of sources without a repository"

# Mistakes are reported.
mkdir "$work/empty"
if "$repo/manifests/image/build.py" --build "$work/empty" --out "$work/x.tar" 2>"$work/error"; then fail "built from nothing"; fi
grep -q 'run tests/setup.sh --build' "$work/error" || fail "$(cat "$work/error")"
[ ! -e "$work/x.tar" ] || fail "something is left of the failed one"
echo "image $digest: $(jq .bytes "$work/one.json") bytes, $at layers, $(jq '.packages | length' "$bill") packages"
