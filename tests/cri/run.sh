#!/bin/bash
# run.sh - run a script in a guest that has a container runtime.
#
# usage: run.sh [options of run-guest.sh] SCRIPT [ARG...]
#   -b DIR   build tree with the release binaries (default build/release)
# The guest gets what tests/cri/runtime.sh wants: Debian's containerd and runc, Debian's
# CNI plugins, and the images that build_images.sh makes of this build tree's programs.
# exit status: run-guest.sh's; 125 also when the images cannot be made.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vm=$here/../vm
build=$here/../../build/release
options=()
while getopts b:s:S:o:t:T:i:w:m:c:a:v flag; do
    case $flag in
        b) build=$OPTARG ;;
        v) options+=(-v) ;;
        \?) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 125 ;;
        *) options+=("-$flag" "$OPTARG") ;;
    esac
done
shift $((OPTIND - 1))

images=$(mktemp -d "${TMPDIR:-/tmp}/railhead-images.XXXXXX")
trap 'rm -rf "$images"' EXIT
trap 'exit 125' INT TERM HUP
"$here/build_images.sh" "$build/bin" "$images/images.tar" || exit 125
guest=$("$vm/build-guest.sh") || exit 125
"$vm/run-guest.sh" -b "$build" -s cni=/usr/lib/cni -s "runtime=$guest/runtime" -s "images=$images" \
    "${options[@]}" "$@"
