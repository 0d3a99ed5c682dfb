#!/bin/bash
# sysroot.sh - what programs of another architecture are linked with: a directory of unpacked Debian packages.
#
# usage: sysroot.sh [ARCHITECTURE]      (arm64, the default)
# stdout: one line, the directory. It holds the packages of this machine's release of Debian that tests/setup.sh installs for
# the build, and what they need. Nothing is installed: apt resolves against an empty system in a state directory of its own,
# dpkg -x unpacks.
# exit status: 0, or 1 with a reason on stderr.
# Cache: ${XDG_CACHE_HOME:-$HOME/.cache}/railhead/sysroot/ARCHITECTURE-KEY, where KEY is a hash of this script. Callers wait for each other
# (flock); the directory gets its final name when it is complete.
set -euo pipefail

readonly PACKAGES=(libc6-dev libstdc++-12-dev libnl-3-dev libnl-route-3-dev libibverbs-dev libgrpc++-dev libc-ares-dev libprotobuf-dev
    nlohmann-json3-dev libexpected-dev liblmdb-dev libcli11-dev libspdlog-dev libgtest-dev libgmock-dev librapidcheck-dev libhwloc-dev
    prometheus-cpp-dev libboost-dev libssl-dev libyaml-cpp-dev libtomlplusplus-dev libvalijson-dev zlib1g-dev libc6)
architecture=${1:-arm64}
die() { echo "sysroot.sh: $*" >&2; exit 1; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/railhead/sysroot
final=$cache/$architecture-$(sha256sum <"${BASH_SOURCE[0]}" | cut -c1-16)
if [ -d "$final" ]; then echo "$final"; exit 0; fi
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [ -d "$final" ]; then echo "$final"; exit 0; fi
rm -rf "$cache"/.build-*
work=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; die "failed: $*"; }; }

# shellcheck disable=SC2016 # apt's own placeholders
mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && $3 == "Debian" { print $1; exit }')
[ -n "$mirror" ] || die "apt's lists name no mirror of bookworm: run 'apt-get update' first"
apt=$work/apt
mkdir -p "$apt"/none.d "$apt"/lists/partial "$apt"/cache/archives/partial "$work/root"
: >"$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm main" >"$apt/sources.list"
options=(-q -o APT::Sandbox::User=root -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o Acquire::Languages=none
    -o APT::Install-Recommends=0 -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=-
    -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts="$apt/none.d" -o Dir::State="$apt"
    -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache")
quietly apt-get "${options[@]}" update
quietly apt-get "${options[@]}" -y --download-only install "${PACKAGES[@]}"
for deb in "$apt"/cache/archives/*.deb; do quietly dpkg -x "$deb" "$work/root"; done
# Absolute links would lead to this machine.
while read -r link; do
    target=$(readlink "$link")
    ln -sfn "$(realpath -m --relative-to="${link%/*}" "$work/root$target")" "$link"
done < <(find "$work/root" -type l -lname '/*')
for deb in "$apt"/cache/archives/*.deb; do
    dpkg-deb -W --showformat '${Package} ${Version} ${Architecture}\n' "$deb"
done | LC_ALL=C sort >"$work/root/packages"
mv "$work/root" "$final"
echo "$final"
