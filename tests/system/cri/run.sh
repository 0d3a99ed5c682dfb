#!/bin/bash
# run.sh - run a script in a guest that has a container runtime.
#
# usage: run.sh [options of run-guest.sh] SCRIPT [ARG...]
#   -b DIR   build tree with the release binaries (default build/release)
#   -D N     also with the DaemonSet: the image of manifests/image/ of N releases, railhead.test/railhead:1
#            and so on, and what the manifest says of its containers (tests/system/cri/daemonset.sh)
#   -r DIR   another runtime. CRI-O: DIR/bin has crio, pinns, conmon, crun and skopeo, DIR/lib the libraries
#            of these that the guest may lack. Or another containerd: DIR has it, its shim, ctr and runc
# The guest gets what tests/system/cri/runtime.sh wants: Debian's containerd and runc, or the one of -r, Debian's
# CNI plugins, and the images that build_images.sh makes of this build tree's programs.
# exit status: run-guest.sh's; 125 also when the images cannot be made.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vm=$here/../../support/vm
build=$here/../../../build/release
options=() daemonset='' other=''
while getopts D:r:b:s:S:o:t:T:i:w:m:c:a:v flag; do
    case $flag in
        b) build=$OPTARG ;;
        v) options+=(-v) ;;
        D) daemonset=$OPTARG ;;
        r) other=$OPTARG ;;
        \?) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 125 ;;
        *) options+=("-$flag" "$OPTARG") ;;
    esac
done
shift $((OPTIND - 1))

images=$(mktemp -d "${TMPDIR:-/tmp}/railhead-images.XXXXXX")
guests=''
trap '[ -z "$guests" ] || { kill "$guests" && wait "$guests"; } 2>/dev/null; rm -rf "$images"' EXIT
trap 'exit 125' INT TERM HUP
"$here/build_images.sh" "$build/bin" "$images/images.tar" || exit 125
if [ -n "$daemonset" ]; then
    # Of other times, so that no layer of the second is one of the first.
    for ((release = 1; release <= daemonset; release++)); do
        SOURCE_DATE_EPOCH=$((1700000000 + release)) "$here/../../../manifests/image/build.py" --build "$build" \
            --out "$images/railhead-$release.tar" --name "railhead.test/railhead:$release" >/dev/null || exit 125
    done
    tools=$("$here/../manifests/tools.sh") && "$tools/bin/kustomize" build "$here/../../../manifests/base" >"$images/daemonset.yaml" &&
        /usr/bin/python3 "$here/../manifests/containers.py" "$images/daemonset.yaml" node0 >"$images/containers.json" || exit 125
fi
guest=$("$vm/build-guest.sh") || exit 125
runtime=$guest/runtime
if [ -x "$other/bin/crio" ]; then
    options+=(-s "crio=$other")
elif [ -n "$other" ]; then
    [ -x "$other/containerd" ] || { echo "run.sh: $other has neither bin/crio nor containerd" >&2; exit 125; }
    runtime=$other
fi
# In the background, so that signals are taken at once.
"$vm/run-guest.sh" -b "$build" -s cni=/usr/lib/cni -s "runtime=$runtime" -s "images=$images" \
    "${options[@]}" "$@" &
guests=$!
status=0
wait "$guests" || status=$?
guests=''
exit $status
