#!/bin/bash
# pack.sh - the package of a release build, its path on stdout. Builds its programs first, as far as they are not.
#
# usage: pack.sh BUILD DIRECTORY [VERSION [DEB|RPM]]
# exit status: 0; 1 with cpack's reasons on stderr
set -euo pipefail
build=$1 directory=$2 generator=${4:-DEB}
version=()
[ $# -lt 3 ] || version=(-D "CPACK_PACKAGE_VERSION=$3")
mkdir -p "$directory"
# One at a time: two ninjas in a tree spoil what they note of it.
said=$(flock "$build/build.lock" cmake --build "$build" --target programs 2>&1) || { echo "$said" >&2; echo "pack.sh: the build failed" >&2; exit 1; }
said=$(cpack -G "$generator" --config "$build/CPackConfig.cmake" -B "$directory" "${version[@]}" 2>&1) ||
    { echo "$said" >&2; echo "pack.sh: cpack failed" >&2; exit 1; }
rm -rf "$directory/_CPack_Packages"
find "$directory" -maxdepth 1 -name "*.${generator,,}"
