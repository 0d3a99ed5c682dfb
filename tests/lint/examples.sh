#!/bin/bash
# examples.sh BIN - the examples in manifests/ are what our own binaries take.
set -euo pipefail
bin=$1
cd "$(dirname "$0")/../../manifests/examples"
root=$(mktemp -d)        # an empty machine
trap 'rm -rf "$root"' EXIT
install -D fabric.json "$root/etc/railhead/fabric.json"
RAILHEAD_ROOT=$root "$bin/railheadd" --list | jq -e '.absentRails | length == 2' >/dev/null

# The network configuration gets as far as the device that is not there.
config=$(sed -n "s/^  config: '\(.*\)'$/\1/p" network.yaml)
[ -n "$config" ] || { echo "examples.sh: no configuration in network.yaml" >&2; exit 1; }
answer=$(CNI_COMMAND=ADD CNI_CONTAINERID=c CNI_IFNAME=net1 CNI_NETNS=/proc/self/ns/net CNI_NETNS_OVERRIDE=1 CNI_PATH=$bin \
    RAILHEAD_ROOT=$root "$bin/railhead" <<<"$config") && { echo "examples.sh: ADD without a device succeeded" >&2; exit 1; }
jq -e '.code == 7 and (.msg | test("deviceID"))' <<<"$answer" >/dev/null || { echo "examples.sh: $answer" >&2; exit 1; }
