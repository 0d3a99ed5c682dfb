#!/bin/bash
# setup.sh - all that building, testing and the demo need on a Debian 12 machine.
#
# usage: tests/setup.sh [--build]     install the packages; --build: and build "release"
#        . tests/setup.sh             for scripts: the functions railhead_setup,
#                                     railhead_build [TARGET...], railhead_guest
# Silent and fast (no apt, no root) when everything is there.  Installing needs root,
# or sudo.  QEMU comes from bookworm-backports, which is added to apt's sources if it
# is missing: the igb device needs QEMU 8, Debian 12 has 7.2.
# exit status: 0, or 1 with the reason (and apt's output) on stderr.

RAILHEAD_REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

RAILHEAD_PACKAGES=(
    # build
    build-essential g++ cmake ninja-build ccache pkg-config clang clang-format clang-tidy lld
    libclang-rt-14-dev
    libnl-3-dev libnl-route-3-dev libibverbs-dev libgrpc++-dev libc-ares-dev libprotobuf-dev protobuf-compiler
    protobuf-compiler-grpc nlohmann-json3-dev libexpected-dev liblmdb-dev libcli11-dev libspdlog-dev
    libgtest-dev libgmock-dev librapidcheck-dev libhwloc-dev prometheus-cpp-dev golang-go golang-github-appc-cni-dev
    golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev
    libboost-dev libssl-dev libyaml-cpp-dev libtomlplusplus-dev libvalijson-dev
    # tests, guests, demo
    containernetworking-plugins kmod cpio xz-utils zstd tcpdump iproute2 iputils-ping jq shellcheck
    strace python3 python3-yaml python3-jsonschema util-linux openssl busybox-static rpm etcd-server prometheus ucx-utils openmpi-bin help2man zsh fish file lldpd
)
RAILHEAD_QEMU=qemu-system-x86
RAILHEAD_QEMU_MIN=1:8

# A compiler cache that finds nothing is not to preprocess every file for it first; it would
# leave alone what uses a precompiled header.
export CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros

railhead_die() { echo "tests/setup.sh: $*" >&2; return 1; }

# railhead_missing: the packages of the list that are not installed, QEMU (8 or
# later) left out; one dpkg-query for all.
railhead_missing() {
    local -A installed=()
    local name status
    while read -r name status; do
        [ "$status" != installed ] || installed[${name%%:*}]=1
    done < <(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' "${RAILHEAD_PACKAGES[@]}" 2>/dev/null)
    for name in "${RAILHEAD_PACKAGES[@]}"; do
        [ -n "${installed[$name]:-}" ] || echo "$name"
    done
}

railhead_has_qemu() {
    local version
    version=$(dpkg-query -W -f '${Version}' "$RAILHEAD_QEMU" 2>/dev/null) && [ -n "$version" ] &&
        dpkg --compare-versions "$version" ge "$RAILHEAD_QEMU_MIN"
}

# railhead_apt ARG...: apt-get as root, without questions, shown only when it fails.
railhead_apt() {
    local as_root=() log
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || {
            railhead_die "packages are missing and this is not root: run tests/setup.sh once as root (or install sudo)"
            return 1
        }
        as_root=(sudo)
    fi
    log=$(mktemp) || return
    if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        rm -f "$log"
        railhead_die "failed: apt-get $*"
        return 1
    fi
    rm -f "$log"
}

# railhead_targets: the package indexes that apt knows, as "ADDRESS CODENAME".
railhead_targets() {
    # shellcheck disable=SC2016 # apt's own placeholders
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' |
        awk '$3 ~ /^Debian/ { print $1, $2 }'
}

# railhead_backports: make bookworm-backports known to apt, from the mirror that
# the machine uses for bookworm itself.
railhead_backports() {
    local mirror line file=/etc/apt/sources.list.d/railhead-backports.list
    [[ $(railhead_targets) != *' bookworm-backports'* ]] || return 0
    mirror=$(railhead_targets | awk '$2 == "bookworm" { print $1; exit }')
    [ -n "$mirror" ] || {
        railhead_die "apt knows no source of Debian 12 (bookworm) to take backports from; add bookworm-backports to apt's sources by hand"
        return 1
    }
    line="deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main"
    if [ "$(id -u)" = 0 ]; then echo "$line" >"$file"; else echo "$line" | sudo tee "$file" >/dev/null; fi || return
    railhead_apt update
}

# railhead_no_services PACKAGE...: tests start etcd, Prometheus and lldpd themselves; the services that
# Debian's packages enable and start are not for a machine that did not ask for them.
railhead_no_services() {
    local as_root=() package
    [ -d /run/systemd/system ] || return 0
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    for package; do
        case $package in
            etcd-server | lldpd | prometheus) ;;
            *) continue ;;
        esac
        "${as_root[@]}" systemctl --quiet disable --now "${package%-server}.service" ||
            echo "setup: ${package%-server}.service is left running" >&2
    done
}

# railhead_setup: everything installed.
railhead_setup() {
    local missing=()
    mapfile -t missing < <(railhead_missing)
    if [ ${#missing[@]} = 0 ] && railhead_has_qemu; then return 0; fi
    echo "setup: installing ${missing[*]} $(railhead_has_qemu || echo "$RAILHEAD_QEMU")" >&2
    railhead_apt update || return
    [ ${#missing[@]} = 0 ] || railhead_apt install --no-install-recommends "${missing[@]}" || return
    railhead_no_services "${missing[@]}"
    if ! railhead_has_qemu; then
        railhead_backports || return
        railhead_apt install --no-install-recommends -t bookworm-backports "$RAILHEAD_QEMU" || return
    fi
    mapfile -t missing < <(railhead_missing)
    if [ ${#missing[@]} != 0 ] || ! railhead_has_qemu; then
        railhead_die "still missing after the installation: ${missing[*]} $(railhead_has_qemu || echo "$RAILHEAD_QEMU >= $RAILHEAD_QEMU_MIN")"
    fi
}

# railhead_build [TARGET...]: build the release preset (all of it, or these targets);
# quiet unless it fails.  Sets RAILHEAD_BUILD to the build tree.
# shellcheck disable=SC2120 # targets are for those who source this file
railhead_build() {
    local log launcher=()
    RAILHEAD_BUILD=$RAILHEAD_REPO/build/release
    ! command -v ccache >/dev/null ||
        launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    mkdir -p "$RAILHEAD_BUILD" || return
    log=$RAILHEAD_BUILD/railhead-build.log
    if [ ! -f "$RAILHEAD_BUILD/build.ninja" ]; then
        (cd "$RAILHEAD_REPO" && cmake --preset release "${launcher[@]}") >"$log" 2>&1 || {
            tail -n 40 "$log" >&2
            railhead_die "cmake --preset release failed; all of its output is in $log"
            return 1
        }
    fi
    local targets=()
    [ $# = 0 ] || targets=(--target "$@")
    cmake --build "$RAILHEAD_BUILD" "${targets[@]}" >"$log" 2>&1 || {
        grep -A12 -E 'FAILED|error:|Error' "$log" | head -60 >&2
        railhead_die "the build failed; all of its output is in $log"
        return 1
    }
}

# railhead_guest: the guest of tests/support/vm is in the cache; prints its directory.
railhead_guest() {
    # Its packages come by apt's lists, which a machine may have thrown away.
    [ -n "$(railhead_targets)" ] || railhead_apt update || return
    "$RAILHEAD_REPO/tests/support/vm/build-guest.sh"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -uo pipefail
    case "${1:-}" in
        '') railhead_setup ;;
        --build) railhead_setup && railhead_build all ;;
        *) sed -n '2,/^$/p' "$0" | sed 's/^# \?//' >&2; exit 1 ;;
    esac
    exit
fi
