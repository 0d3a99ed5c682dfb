#!/bin/bash
# build_images.sh BIN TO - the images of the container tests as one OCI image layout,
# a tar for `ctr images import`.
#
# usage: build_images.sh BIN TO
#   BIN   directory with cri-pause and cri-show of a release build (static)
#   TO    the tar to write
# Each image holds one static program and nothing else: no shell, no libc, so that what
# a container shows comes from the runtime and not from its image.
#   railhead.test/pause:1   /pause, the sandbox image
#   railhead.test/show:1    /show, prints what the container has of Railhead
# The same programs make the same tar, byte by byte.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 2; }
bin=$1 to=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
layout=$work/layout
mkdir -p "$layout/blobs/sha256"
blobs=$layout/blobs/sha256

pack() { tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar -C "$1" -cf "$2" .; }
# blob FILE: moves it to its place; prints {digest, size} as a descriptor has them.
blob() {
    local digest size
    digest=$(sha256sum "$1" | cut -d' ' -f1)
    size=$(stat -c %s "$1")
    mv "$1" "$blobs/$digest"
    jq -n --arg digest "sha256:$digest" --argjson size "$size" '{digest: $digest, size: $size}'
}

# image PROGRAM NAME: prints the descriptor of its manifest.
image() {
    local program=$bin/cri-$1 name=$2 layer config
    [ -x "$program" ] || { echo "build_images.sh: no program '$program': build the release first" >&2; exit 1; }
    # A program with a dynamic loader would not start in an empty file system.
    ! readelf -lW "$program" | grep INTERP >/dev/null || { echo "build_images.sh: $program is not static" >&2; exit 1; }
    rm -rf "$work/root"
    install -D -m 755 "$program" "$work/root/$1"
    pack "$work/root" "$work/layer"
    layer=$(blob "$work/layer")
    jq -n --arg path "/$1" --argjson layer "$layer" '{ architecture: "amd64", os: "linux",
        config: { Entrypoint: [$path] }, rootfs: { type: "layers", diff_ids: [$layer.digest] } }' >"$work/config"
    config=$(blob "$work/config")
    jq -n --argjson config "$config" --argjson layer "$layer" '{ schemaVersion: 2,
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        config: ({ mediaType: "application/vnd.oci.image.config.v1+json" } + $config),
        layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar" } + $layer] }' >"$work/manifest"
    blob "$work/manifest" | jq --arg name "$name" '{ mediaType: "application/vnd.oci.image.manifest.v1+json" } + . +
        { annotations: { "io.containerd.image.name": $name, "org.opencontainers.image.ref.name": ($name | split(":")[1]) } }'
}

pause=$(image pause railhead.test/pause:1)
show=$(image show railhead.test/show:1)
echo '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
jq -n --argjson pause "$pause" --argjson show "$show" '{ schemaVersion: 2, manifests: [$pause, $show] }' >"$layout/index.json"
pack "$layout" "$work/images.tar"
mv "$work/images.tar" "$to"
