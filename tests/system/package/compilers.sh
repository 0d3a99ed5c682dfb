#!/bin/bash
# compilers.sh - a source tarball without the tests, built, installed and started with several compilers.
#
# usage: compilers.sh [COMPILER...]     g++-12 clang++-14 clang++-16 clang++-19 (Debian 12's) trixie; all without arguments
#   trixie: g++ 14 and the libraries of Debian 13, in a root file system that mmdebstrap makes in a folder of its own
# Installs the compilers that are missing (root or sudo); trixie needs root. Too slow for each run of the tests.
# Prints one line a compiler, with how many warnings it had. exit status: 0 all of them work
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup.sh
. "$here/../../setup.sh"
case ${1:-} in -*) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 1 ;; esac
[ $# -gt 0 ] || set -- g++-12 clang++-14 clang++-16 clang++-19 trixie

# What building needs, of tests/setup.sh's list, for a system that has nothing.
readonly TRIXIE_PACKAGES=(g++-14 cmake ninja-build pkg-config libnl-3-dev libnl-route-3-dev libibverbs-dev libgrpc++-dev libc-ares-dev libprotobuf-dev
    protobuf-compiler protobuf-compiler-grpc nlohmann-json3-dev libexpected-dev liblmdb-dev libcli11-dev libspdlog-dev libboost-dev
    libssl-dev libzstd-dev zlib1g-dev libyaml-cpp-dev libtomlplusplus-dev help2man)

work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-compilers.XXXXXX")
trap 'rm -rf "$work"' EXIT
git -C "$RAILHEAD_REPO" archive --prefix=railhead/ HEAD -- . ':!tests' ':!bench' >"$work/railhead.tar"

# build COMPILER: run where the compiler is, in a folder with the tarball. As a packager does it, but with joined
# sources, which take a third of the time.
# shellcheck disable=SC2016 # its own variables
readonly BUILD='set -e
tar xf railhead.tar
cmake -S railhead -B build -G Ninja -DCMAKE_CXX_COMPILER="$1" -DCMAKE_BUILD_TYPE=Release -DRAILHEAD_STATIC=ON -DRAILHEAD_BUILD_TESTS=OFF \
    -DCMAKE_UNITY_BUILD=ON -DCMAKE_INSTALL_PREFIX=/usr >configure.log
cmake --build build >build.log
DESTDIR=$PWD/root cmake --install build >install.log
for program in usr/bin/railheadd usr/bin/railctl usr/libexec/railhead/railhead-nvml opt/cni/bin/railhead opt/cni/bin/railhead-ipam; do root/$program --version >version.log; done
test -s root/usr/share/man/man8/railctl.8.gz'

say() { # COMPILER FOLDER STATUS
    if [ "$3" = 0 ]; then
        echo "$1: built, installed, started; $(grep -c ' warning: ' "$2/build.log" || true) warnings"
    else
        tail -n 20 "$2"/*.log >&2
        echo "$1: FAILED"
        failed=1
    fi
}

failed=0
for compiler; do
    mkdir "$work/$compiler"
    status=0
    if [ "$compiler" = trixie ]; then
        command -v mmdebstrap >/dev/null || railhead_apt install --no-install-recommends mmdebstrap
        mirror=$(railhead_targets | awk '$2 == "bookworm" { print $1; exit }')
        mmdebstrap --quiet --variant=apt --include="$(IFS=,; echo "${TRIXIE_PACKAGES[*]}")" trixie "$work/$compiler" "$mirror"
        mkdir "$work/$compiler/build-railhead"
        cp "$work/railhead.tar" "$work/$compiler/build-railhead"
        chroot "$work/$compiler" sh -c "cd /build-railhead && $BUILD" sh g++-14 || status=$?
        say 'g++-14 of trixie' "$work/$compiler/build-railhead" "$status"
    else
        command -v "$compiler" >/dev/null || railhead_apt install --no-install-recommends "${compiler/clang++/clang}"
        cp "$work/railhead.tar" "$work/$compiler"
        (cd "$work/$compiler" && sh -c "$BUILD" sh "$compiler") || status=$?
        say "$compiler" "$work/$compiler" "$status"
    fi
    rm -rf "${work:?}/$compiler"
done
exit $failed
