#!/bin/bash
# check.sh BIN [MANIFESTS OVERLAY...] - base, every overlay of manifests/, and an overlay for every example of the chart (overlays.py)
# can be built, are objects that Kubernetes takes, refer to what is there, and all JSON in them is what our own programs take; so are
# the examples of pods.
# MANIFESTS: of this copy, which has the overlays. OVERLAY: these alone, and the examples that go with them.
# BIN: directory of railhead, railheadd and railctl.
set -euo pipefail
bin=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
tools=$("$here/tools.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
manifests=${2:-$work/manifests}
failed=0
problem() { echo "check.sh: $*" >&2; failed=1; }

# ---- what Kubernetes would say -------------------------------------------------------
renderings=()
if [ $# -gt 2 ]; then overlays=("${@:3}"); else
    cp -r "$repo/manifests" "$manifests"
    "$here/overlays.py" "$manifests"
    mapfile -t overlays < <(cd "$manifests/overlays" && printf '%s\n' *)
    "$tools/bin/kustomize" build "$manifests/base" >"$work/base.yaml" || exit
    renderings+=("base=$work/base.yaml")
    # The image of a copy, set as README.md says, is that of each container.
    cp -r "$manifests" "$work/copy"
    (cd "$work/copy/overlays/minimal" && "$tools/bin/kustomize" edit set image railhead=registry.test/railhead:9) || exit
    images=$("$tools/bin/kustomize" build "$work/copy/overlays/minimal" | sed -n 's/^ *-* *image: //p' | sort -u)
    [ "$images" = registry.test/railhead:9 ] || problem "kustomize edit set image: the containers have $images"
fi
for overlay in "${overlays[@]}"; do
    "$tools/bin/kustomize" build "$manifests/overlays/$overlay" >"$work/$overlay.yaml" || exit
    renderings+=("$overlay=$work/$overlay.yaml")
done
version=$(sed -n 's/^project(railhead VERSION \([^ ]*\).*/\1/p' "$repo/CMakeLists.txt")
examples=$manifests/examples
/usr/bin/python3 -B "$here/check.py" --tools "$tools" --version "$version" --extract "$work/json" \
    --examples "$examples" "${renderings[@]}" || exit

# ---- what our programs say ------------------------------------------------------------
root=$work/root          # an empty machine
mkdir -p "$root/etc/railhead"
export RAILHEAD_ROOT=$root
# network FILE: the plugin takes it, as far as the device that is not there.
network() {
    local answer
    answer=$(CNI_COMMAND=ADD CNI_CONTAINERID=c CNI_IFNAME=net1 CNI_NETNS=/proc/self/ns/net CNI_NETNS_OVERRIDE=1 \
        CNI_PATH=$bin "$bin/railhead" <"$1") && { problem "$1: ADD without a device succeeded"; return; }
    jq -e '.code == 7 and ((.msg + .details) | test("deviceID"))' <<<"$answer" >/dev/null || problem "$1: $answer"
}
for pair in "${renderings[@]}"; do
    overlay=${pair%%=*}
    # Below the root: that is how railctl takes paths.
    rm -rf "$root/config" && cp -r "$work/json/$overlay" "$root/config"
    "$bin/railctl" install config --from /config --node-name gpu-001 >/dev/null || { problem "$overlay: fabric.json"; continue; }
    rails=$(jq '.rails | length' "$root/etc/railhead/fabric.json")
    if said=$("$bin/railheadd" --list 2>&1); then
        jq -e --argjson rails "$rails" '.absentRails | length == $rails' <<<"$said" >/dev/null ||
            problem "$overlay: railheadd --list: $said"
    else
        problem "$overlay: railheadd --list: $said"
    fi
    for file in "$work/json/$overlay"/networks/*.json; do
        [ ! -e "$file" ] || network "$file"
    done
done
# Chained, a pod without devices passes.
result='{"cniVersion":"1.0.0","interfaces":[],"ips":[]}'
jq --argjson result "$result" '. as $list | .plugins[] | select(.type == "railhead") |
    . + { cniVersion: $list.cniVersion, name: $list.name, prevResult: $result }' "$examples/cluster.conflist" >"$work/chained.json"
CNI_COMMAND=ADD CNI_CONTAINERID=c CNI_IFNAME=eth0 CNI_NETNS=/proc/self/ns/net CNI_NETNS_OVERRIDE=1 CNI_PATH=$bin \
    CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=d;K8S_POD_NAME=p;K8S_POD_UID=u' "$bin/railhead" <"$work/chained.json" >"$work/answer" ||
    problem "cluster.conflist: $(cat "$work/answer")"
/usr/bin/python3 -B "$here/rollout.py" "${renderings[0]#*=}" || problem 'rollout.py'
[ "$failed" = 0 ] || exit 1
echo "${#renderings[@]} renderings are good"
