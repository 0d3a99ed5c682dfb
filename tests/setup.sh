#!/bin/bash
# setup.sh - all that building, testing and the demo need on a Debian 12 machine.
#
# usage: tests/setup.sh [--build]     install the packages; --build: and build "release"
#        . tests/setup.sh             for scripts: the functions railhead_setup,
#                                     railhead_build [TARGET], railhead_guest
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
    strace python3 python3-yaml python3-jsonschema util-linux openssl busybox-static rpm prometheus ucx-utils openmpi-bin help2man zsh fish file lldpd
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

# Of a mirror that is silent, apt gives up after some minutes.
RAILHEAD_APT_OPTIONS=(-o Acquire::http::Timeout="${RAILHEAD_APT_TIMEOUT:-15}" -o Acquire::https::Timeout="${RAILHEAD_APT_TIMEOUT:-15}")

# railhead_why TEXT [DIR...]: what to do about it, if what a program said tells, or if the disk of a DIR is full.
railhead_why() {
    local dir free full='' reach='Connection (failed|timed out)|[Cc]ould not (connect|resolve)|Unable to connect|failure resolving'
    for dir in "${@:2}"; do
        while [ ! -d "$dir" ]; do dir=$(dirname "$dir"); done
        free=$(df --output=avail -m "$dir" | tail -n 1)
        [ "$free" -ge 16 ] || { full=1 && echo "the disk of $dir is full, $((free)) MiB are left: make room there, and run it again" >&2; }
    done
    if [ -z "$full" ] && [[ $1 = *'No space left on device'* ]]; then echo "a disk is full: make room, and run it again" >&2; fi
    if [[ $1 =~ $reach ]]; then
        [[ $1 =~ 'Failed to fetch '([^ ]+) ]]
        echo "a mirror does not answer${BASH_REMATCH[1]:+ (${BASH_REMATCH[1]})}: make the network, http_proxy and apt's sources (/etc/apt) right, and run it again" >&2
    fi
}

# railhead_as_root WHY: sets as_root to what a command needs before it.
railhead_as_root() {
    as_root=()
    [ "$(id -u)" != 0 ] || return 0
    as_root=(sudo)
    command -v sudo >/dev/null || railhead_die "this is not root and there is no sudo, but $1: as root, run tests/setup.sh once"
}

# railhead_room ARG...: there is room for what apt-get would install. It does not look itself, and ends with half a package.
railhead_room() {
    local size need=0 free
    for size in $("${as_root[@]}" env LC_ALL=C apt-get --assume-no "$@" 2>/dev/null |
        sed -nE 's/^(After this operation,|Need to get) ([0-9.,]+) ([kMGT]?)B.*/\2\3/p' | tr -d , | tr k K); do
        need=$((need + $(numfmt --from=si "$size")))
    done
    free=$(df --output=avail -B 1 /usr | tail -n 1)
    [ "$need" -lt "$free" ] ||
        railhead_die "packages need $((need >> 20)) MiB, and the disk of /usr has $((free >> 20)): make room there, and run it again"
}

# railhead_apt ARG...: apt-get as root, without questions, shown only when it fails.
railhead_apt() {
    local as_root log arguments=("$@") options=("${RAILHEAD_APT_OPTIONS[@]}" -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300)
    railhead_as_root "apt-get $1 is needed" || return
    case $1 in
        update) options+=(-o Acquire::Retries=1) ;;
        install) railhead_room "$@" || return ;;
    esac
    log=$(mktemp) || return
    if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y "${options[@]}" "${arguments[@]}" >"$log" 2>&1; then
        tail -n 30 "$log" >&2
        # An update may have succeeded without some of its sources.
        railhead_why "$RAILHEAD_APT_LACKS$(<"$log")" /var/cache/apt /usr
        rm -f "$log"
        railhead_die "failed: apt-get $*"
        return 1
    fi
    [ "$1" != update ] || RAILHEAD_APT_LACKS=$(grep '^W: Failed to fetch' "$log" || true)
    rm -f "$log"
}
RAILHEAD_APT_LACKS=''

# railhead_targets: the package indexes that apt knows, as "ADDRESS CODENAME".
railhead_targets() {
    # shellcheck disable=SC2016 # apt's own placeholders
    apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' |
        awk '$3 ~ /^Debian/ { print $1, $2 }'
}

# railhead_backports: make bookworm-backports known to apt, from the mirror that
# the machine uses for bookworm itself.
railhead_backports() {
    local mirror line as_root file=/etc/apt/sources.list.d/railhead-backports.list
    [[ $(railhead_targets) != *' bookworm-backports'* ]] || return 0
    mirror=$(railhead_targets | awk '$2 == "bookworm" { print $1; exit }')
    [ -n "$mirror" ] || {
        railhead_die "apt knows no source of Debian 12 (bookworm) to take backports from; add bookworm-backports to apt's sources by hand"
        return 1
    }
    line="deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main"
    railhead_as_root 'bookworm-backports is to be added' || return
    if echo "$line" | "${as_root[@]}" tee "$file" >/dev/null && railhead_apt update &&
        [[ $(railhead_targets) = *' bookworm-backports'* ]]; then return 0; fi
    "${as_root[@]}" rm -f "$file"
    railhead_why "$RAILHEAD_APT_LACKS"
    railhead_die "$mirror does not give bookworm-backports, which has QEMU 8"
}

# railhead_no_services PACKAGE...: tests start Prometheus and lldpd themselves; the services that
# Debian's packages enable and start are not for a machine that did not ask for them.
railhead_no_services() {
    local as_root package
    [ -d /run/systemd/system ] || return 0
    railhead_as_root 'services are to be stopped' || return
    for package; do
        case $package in
            lldpd | prometheus) ;;
            *) continue ;;
        esac
        "${as_root[@]}" systemctl --quiet disable --now "$package.service" ||
            echo "setup: $package.service is left running" >&2
    done
}

# railhead_setup: everything installed.
railhead_setup() {
    local missing=() as_root wanted
    mapfile -t missing < <(railhead_missing)
    if [ ${#missing[@]} = 0 ] && railhead_has_qemu; then return 0; fi
    wanted="${missing[*]} $(railhead_has_qemu || echo "$RAILHEAD_QEMU ($RAILHEAD_QEMU_MIN or later)")"
    railhead_as_root "packages are missing: $wanted" || return
    echo "setup: installing $wanted" >&2
    railhead_apt update || return
    [ ${#missing[@]} = 0 ] || railhead_apt install --no-install-recommends "${missing[@]}" || return
    railhead_no_services "${missing[@]}"
    if ! railhead_has_qemu; then
        railhead_backports || return
        railhead_apt install --no-install-recommends -t bookworm-backports "$RAILHEAD_QEMU" || return
    fi
    mapfile -t missing < <(railhead_missing)
    if [ ${#missing[@]} != 0 ] || ! railhead_has_qemu; then
        railhead_die "still missing after the installation: ${missing[*]} $(railhead_has_qemu || echo "$RAILHEAD_QEMU $RAILHEAD_QEMU_MIN or later")"
    fi
}

# railhead_progress: what ninja on stdin says that it has done, on stderr: on a terminal in one line, else in a line for each tenth.
railhead_progress() {
    local line step steps tenth=0 end=''
    while IFS= read -r line; do
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        step=${BASH_REMATCH[1]} steps=${BASH_REMATCH[2]}
        if [ -t 2 ]; then
            end=$'\r\e[K'
            printf '%s%4d s    %d of %d steps' "$end" "$SECONDS" "$step" "$steps" >&2
        elif [ "$steps" -ge 20 ] && [ $((10 * step / steps)) != "$tenth" ]; then
            tenth=$((10 * step / steps))
            printf '%4d s    %d of %d steps\n' "$SECONDS" "$step" "$steps" >&2
        fi
    done
    printf %s "$end" >&2
}

# railhead_ninja TARGET: one at a time, since two ninjas in a tree spoil what they note of it.
railhead_ninja() {
    (
        flock -n 9 || { echo "setup: another build in $RAILHEAD_BUILD goes on; waiting" >&2 && flock 9; }
        cmake --build "$RAILHEAD_BUILD" --target "$1" 2>&1 9>&-
    ) 9>"$RAILHEAD_BUILD/build.lock"
}

# railhead_build [TARGET]: build the release preset (all of it, or this target); shows progress, and what fails.
# Sets RAILHEAD_BUILD to the build tree.
# shellcheck disable=SC2120 # targets are for those who source this file
railhead_build() {
    local log launcher=()
    RAILHEAD_BUILD=$RAILHEAD_REPO/build/release
    mkdir -p "$RAILHEAD_BUILD" 2>/dev/null && [ -w "$RAILHEAD_BUILD" ] || {
        railhead_why '' "$RAILHEAD_BUILD"
        railhead_die "$(id -un) cannot write to $RAILHEAD_BUILD: remove it as the user who made it, or build as that one"
        return 1
    }
    if command -v ccache >/dev/null; then
        launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
        # Without a place for its cache, it would fail instead of the compiler.
        mkdir -p "$(ccache -k cache_dir)" 2>/dev/null || export CCACHE_DISABLE=1
    fi
    log=$RAILHEAD_BUILD/railhead-build.log
    # On a full disk CMake may succeed, and have written nothing.
    if [ ! -f "$RAILHEAD_BUILD/build.ninja" ] &&
        ! (cd "$RAILHEAD_REPO" && cmake --preset release "${launcher[@]}" && [ -f "$RAILHEAD_BUILD/build.ninja" ]) >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        rm -f "$RAILHEAD_BUILD"/{build.ninja,CMakeCache.txt}
        railhead_why "$(tail -n 100 "$log")" "$RAILHEAD_BUILD" "${TMPDIR:-/tmp}"
        railhead_die "cmake --preset release failed; all of its output is in $log"
        return 1
    fi
    if ! (set -o pipefail && railhead_ninja "${1:-all}" | tee "$log" | railhead_progress); then
        grep -A12 -E 'FAILED|error:|Error' "$log" | head -60 >&2
        railhead_why "$(tail -n 100 "$log")" "$RAILHEAD_BUILD" "${TMPDIR:-/tmp}"
        railhead_die "the build failed; all of its output is in $log"
        return 1
    fi
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
