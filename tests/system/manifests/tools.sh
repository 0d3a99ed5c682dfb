#!/bin/bash
# tools.sh - what the checks of manifests/ need and Debian 12 has not: kustomize, and the types of the
# Kubernetes API (its Python client), both from Debian 13's packages; prints the directory with them.
#
# usage: tools.sh
# stdout: a directory with bin/kustomize and models/ (one Python file for each type).
# exit status: 0, or 1 with a reason on stderr.
#
# Nothing is installed on this machine: apt has a state directory of its own, dpkg -x unpacks. The client is of
# Kubernetes 1.30, the oldest release that manifests/ is for: what is newer is not known to it.
# Cache: ${XDG_CACHE_HOME:-$HOME/.cache}/railhead/manifest-tools/KEY; KEY is a hash of this script.
set -euo pipefail
readonly SUITE=trixie PACKAGES=(kustomize python3-kubernetes)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/railhead/manifest-tools
final=$cache/$(sha256sum "${BASH_SOURCE[0]}" | cut -c1-16)
die() { echo "tools.sh: $*" >&2; exit 1; }

complete() { [ -x "$final/bin/kustomize" ] && [ -f "$final/models/__init__.py" ]; }
if complete; then echo "$final"; exit; fi
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if complete; then echo "$final"; exit; fi

rm -rf "$cache"/.build-*                 # of one that was killed: this one holds the lock
work=$(mktemp -d "$cache/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
# Where this machine gets Debian from; it may have thrown apt's lists away.
# shellcheck source=tests/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../setup.sh"
[ -n "$(railhead_targets)" ] || railhead_apt update
mirror=$(railhead_targets | awk '$2 == "bookworm" { print $1; exit }')
[ -n "$mirror" ] || die "apt knows no source of Debian 12 (bookworm), from which $SUITE could be had"
apt=$work/apt
mkdir -p "$apt"/none.d "$apt"/lists/partial "$apt"/cache/archives/partial "$work"/{debs,root,bin}
: >"$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $SUITE main" >"$apt/sources.list"
options=("${RAILHEAD_APT_OPTIONS[@]}" -q -o APT::Update::Error-Mode=any -o APT::Sandbox::User=root -o APT::Architecture=amd64 -o Acquire::Languages=none
    -o Dir::Etc::sourcelist="$apt/sources.list" -o Dir::Etc::sourceparts=- -o Dir::Etc::preferences=-
    -o Dir::Etc::preferencesparts="$apt/none.d" -o Dir::State="$apt" -o Dir::State::lists="$apt/lists"
    -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache")
{
    apt-get "${options[@]}" update && (cd "$work/debs" && apt-get "${options[@]}" download "${PACKAGES[@]}")
} >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; railhead_why "$(<"$work/log")" "$cache"; die "could not download ${PACKAGES[*]}"; }
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/root"; done
mv "$work/root/usr/bin/kustomize" "$work/bin/"
mv "$work/root/usr/lib/python3/dist-packages/kubernetes/client/models" "$work/models"
rm -rf "$work"/{apt,debs,root,log}
chmod 755 "$work"
rm -rf "$final"
mv "$work" "$final"
trap - EXIT
echo "$final"
