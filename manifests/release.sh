#!/bin/bash
# release.sh - builds all files of a release below one directory, for amd64 and arm64.
#
# usage: manifests/release.sh [--out DIR] [--dirty]
#   --out DIR   a new or empty directory (build/dist, which is replaced)
#   --dirty     also of a tree with changes that are not committed
# Makes, for both architectures, the images railhead and railhead-tools, .deb, .rpm and the programs. Makes the chart, the JSON schemas,
# the manual pages, kubectl-railhead, one bill of materials (SPDX), and SHA256SUMS of all. The same commit built twice on the same
# packages gives the same bytes. arm64 is cross-built (package g++-aarch64-linux-gnu, which is installed) with a sysroot of Debian packages (package/sysroot.sh).
# exit status: 0; 1 with the reason on stderr; 2 wrong command line
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tests/setup.sh
. "$repo/tests/setup.sh"
out=$repo/build/dist dirty=''
while [ $# != 0 ]; do
    case $1 in
        --out) out=${2:?--out needs a directory} && shift ;;
        --dirty) dirty=1 ;;
        -h | --help) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' && exit ;;
        *) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2 && exit 2 ;;
    esac
    shift
done
die() { echo "release.sh: $*" >&2; exit 1; }
[ -n "$dirty" ] || [ -z "$(git -C "$repo" status --porcelain)" ] || die 'the tree has changes that are not committed (--dirty takes them)'
if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
    railhead_apt update && railhead_apt install --no-install-recommends g++-aarch64-linux-gnu || exit
fi
SOURCE_DATE_EPOCH=$(git -C "$repo" log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^project(railhead VERSION \([^ ]*\).*/\1/p' "$repo/CMakeLists.txt")
release=$out
[ "$release" = "$repo/build/dist" ] || [ -z "$(ls -A "$release" 2>/dev/null)" ] || die "$release is not empty: name a new directory"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out" && out=$work/out

quietly() { "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; die "failed: $*"; }; }
# packed NAME DIRECTORY FILE...: a tar of these that depends on nothing but their names and contents.
packed() {
    tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w \
        -C "$2" -cf - "${@:3}" | gzip -9n >"$out/$1"
}
# architecture NAME BUILD: packages and programs of a build tree.
architecture() {
    quietly cpack -G DEB --config "$2/CPackConfig.cmake" -B "$work/$1"
    quietly cpack -G RPM --config "$2/CPackConfig.cmake" -B "$work/$1"
    mv "$work/$1"/*.deb "$work/$1"/*.rpm "$out/"
    IFS=';' read -ra programs < <(sed -n 's/^RAILHEAD_PROGRAMS:INTERNAL=//p' "$2/CMakeCache.txt")
    packed "railhead-$version-linux-$1.tar.gz" "$2/bin" "${programs[@]}"
}

railhead_setup && railhead_build programs || exit 1
sysroot=$("$repo/manifests/package/sysroot.sh")
# Libraries of a former sysroot would stay in the cache of CMake.
grep -qxF "RAILHEAD_SYSROOT:PATH=$sysroot" "$repo/build/arm64/CMakeCache.txt" 2>/dev/null || rm -rf "$repo/build/arm64"
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
quietly cmake --preset release "${launcher[@]}" -S "$repo" -B "$repo/build/arm64" -DCMAKE_TOOLCHAIN_FILE="$repo/manifests/package/cross.cmake" \
    -DRAILHEAD_SYSROOT="$sysroot" -DRAILHEAD_NATIVE_BIN="$RAILHEAD_BUILD/bin" -DRAILHEAD_BUILD_TESTS=OFF
quietly cmake --build "$repo/build/arm64" --target programs
architecture amd64 "$RAILHEAD_BUILD"
architecture arm64 "$repo/build/arm64"
images() { "$repo/manifests/image/build.py" --build "$RAILHEAD_BUILD" --build "$repo/build/arm64" "$@"; }
quietly images --out "$out/railhead-image-$version.tar"
quietly images --tools --out "$out/railhead-tools-image-$version.tar"
# Links into components/ become files, as in what `helm package` writes.
cp -rL "$repo/manifests/helm/railhead" "$work/railhead"
packed "railhead-$version.tgz" "$work" railhead
mkdir "$work/root" && dpkg -x "$out/railhead_${version}_amd64.deb" "$work/root"
packed "railhead-$version-schemas.tar.gz" "$work/root/usr/share/railhead" .
packed "railhead-$version-man.tar.gz" "$work/root/usr/share/man" man8
install -m 755 "$repo/manifests/kubectl-railhead" "$out/kubectl-railhead"
quietly "$repo/manifests/image/sbom.py" "$out" "$version"
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS && chmod 644 SHA256SUMS)
rm -rf "$release" && mkdir -p "$(dirname "$release")" && mv "$out" "$release"
(cd "$release" && pwd)
