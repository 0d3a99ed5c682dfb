#!/bin/bash
# sysroot.sh - a directory of unpacked Debian packages of any architecture: what programs are linked with, or what an image holds.
#
# usage: sysroot.sh [--suite NAME] [ARCHITECTURE [PACKAGE...]]
#   --suite NAME   the release of Debian (bookworm), with its updates and security fixes as far as apt's sources have them
#   ARCHITECTURE   arm64, the default
#   PACKAGE...     those that tests/setup.sh installs for the build, and the C library, unless named
# stdout: one line, the directory. It holds the packages and what they need, with a database that dpkg-query reads
# (--admindir DIR/var/lib/dpkg). Nothing is installed: apt resolves against an empty system in a state directory of its own,
# dpkg -x unpacks, and no maintainer script runs.
# exit status: 0; 1 with a reason on stderr; 2 wrong command line.
# Cache: ${XDG_CACHE_HOME:-$HOME/.cache}/railhead/sysroot/ARCHITECTURE-KEY, where KEY is a hash of this script, its arguments and the
# packages' versions, of which apt is asked each time. Callers wait for each other (flock); the directory gets its final name when it is
# complete.
set -euo pipefail

packages=(libc6-dev libstdc++-12-dev libnl-3-dev libnl-route-3-dev libibverbs-dev libgrpc++-dev libc-ares-dev libprotobuf-dev
    nlohmann-json3-dev libexpected-dev liblmdb-dev libcli11-dev libspdlog-dev libgtest-dev libgmock-dev librapidcheck-dev libhwloc-dev
    prometheus-cpp-dev libboost-dev libssl-dev libyaml-cpp-dev libtomlplusplus-dev libvalijson-dev zlib1g-dev libc6)
die() { echo "sysroot.sh: $*" >&2; exit 1; }
# shellcheck source=tests/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../tests/setup.sh"
suite=bookworm
if [ "${1:-}" = --suite ]; then
    suite=${2:-}
    shift $(($# < 2 ? 1 : 2))
fi
architecture=${1:-arm64}
[ $# -le 1 ] || packages=("${@:2}")
case $suite$architecture in *[!a-z0-9]*) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2 && exit 2 ;; esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/railhead/sysroot
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
rm -rf "$cache"/.build-*
work=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
quietly() { "$@" >>"$work/log" 2>&1 || { tail -20 "$work/log" >&2; railhead_why "$(<"$work/log")" "$cache"; die "failed: $*"; }; }

# shellcheck disable=SC2016 # apt's own placeholders
sources=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(ORIGIN)' 'Created-By: Packages' | awk -v suite="$suite" '
    $3 != "Debian" { next }
    $2 == "bookworm" { mirror = $1 }
    $2 == suite "-updates" || $2 == suite "-security" { print $1, $2 }
    END { if (mirror) print mirror, suite }')
[[ $'\n'$sources$'\n' = *" $suite"$'\n'* ]] || die "apt's lists name no mirror of bookworm: run 'apt-get update' first"
apt=$work/apt
mkdir -p "$apt"/none.d "$apt"/lists/partial "$apt"/cache/archives/partial "$work/root"
: >"$apt/status"
while read -r source; do echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $source main"; done <<<"$sources" >"$apt/sources.list"
options=("${RAILHEAD_APT_OPTIONS[@]}" -q -o APT::Sandbox::User=root -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o Acquire::Languages=none
    -o APT::Install-Recommends=0 -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=-
    -o Dir::Etc::preferences=- -o Dir::Etc::preferencesparts="$apt/none.d" -o Dir::State="$apt"
    -o Dir::State::lists="$apt/lists" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache")
quietly apt-get "${options[@]}" update
quietly apt-get "${options[@]}" -s install "${packages[@]}"
versions=$(apt-get "${options[@]}" -s install "${packages[@]}" | grep '^Inst ' | LC_ALL=C sort)
final=$cache/$architecture-$({ cat "${BASH_SOURCE[0]}" && echo "$suite ${packages[*]} $versions"; } | sha256sum | cut -c1-16)
if [ -d "$final" ]; then echo "$final"; exit 0; fi
quietly apt-get "${options[@]}" -y --download-only install "${packages[@]}"
database=$work/root/var/lib/dpkg
mkdir -p "$database/info"
for deb in "$apt"/cache/archives/*.deb; do
    quietly dpkg -x "$deb" "$work/root"
    { dpkg-deb -f "$deb" && printf 'Status: install ok installed\n\n'; } >>"$database/status"
    name=$(dpkg-deb -f "$deb" Package)
    dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's#^\./#/#; s#\(.\)/$#\1#; s#^/$#/.#' >"$database/info/$name.list"
    dpkg-deb --info "$deb" md5sums >"$database/info/$name.md5sums" 2>/dev/null || rm "$database/info/$name.md5sums"
done
# Absolute links would lead to this machine.
while read -r link; do
    target=$(readlink "$link")
    ln -sfn "$(realpath -m --relative-to="${link%/*}" "$work/root$target")" "$link"
done < <(find "$work/root" -type l -lname '/*')
mv "$work/root" "$final"
echo "$final"
