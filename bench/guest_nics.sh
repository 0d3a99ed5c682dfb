#!/bin/bash
# guest_nics.sh - how long others wait for the kernel while /metrics/nics is scraped, on real
# PFs and VFs; runs in a guest of tests/support/vm.
# usage: guest_nics.sh ROUNDS     (bench/run.sh calls it)
# All VFs that igb makes, seven of each PF, each in a pod with soft RoCE.
# Writes $OUT/lines.
set -eu
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
rounds=$1
readonly VFS=7

die() { echo "bench/guest_nics.sh: $*" >&2; exit 1; }
bin=/tmp/bin
mkdir -p "$bin" /etc/railhead
cp "$BUILD"/bin/{railhead,railhead-ipam,railhead_node_bench} "$bin/"
modprobe -a rdma_rxe ib_uverbs || die "no modules for soft RoCE"
jq -n --arg node "$(uname -n)" '{ version: 1, addresses: { reuseDelaySeconds: 0, conflictProbeMs: 0 },
    policy: { networks: [ { devices: "any" } ] }, pools: [ { resource: "railhead.io/roce", rails: [ "rail0", "rail1" ] } ],
    rails: [ range(2) | { name: "rail\(.)", pf: "pf\(.)", softRoce: true, subnet: "10.10\(.).0.0/24", gateway: "10.10\(.).0.254",
                          nodeRanges: { ($node): "10.10\(.).0.10-10.10\(.).0.99" } } ] }' >/etc/railhead/fabric.json

# add POD DEVICE: as a runtime does it.
add() {
    ip netns add "$1" && ip -n "$1" link set lo up || return
    CNI_COMMAND=ADD CNI_CONTAINERID=$1 CNI_NETNS=/run/netns/$1 CNI_IFNAME=net1 CNI_PATH=$bin \
        CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=jobs;K8S_POD_NAME=$1" "$bin/railhead" \
        <<<"{ \"cniVersion\": \"1.0.0\", \"name\": \"rails\", \"type\": \"railhead\", \"deviceID\": \"$2\", \"linkTimeoutSeconds\": 120 }" >/tmp/result ||
        { cat /tmp/result >&2; return 1; }
}
for pf in pf0 pf1; do
    make_vfs "$pf" "$VFS" || die "no VFs"
    for ((vf = 0; vf < VFS; vf++)); do add "$pf-$vf" "$(vf_pci "$pf" "$vf")" || die "VF $vf of $pf is in no pod"; done
done
echo "guest: /metrics/nics beside changes of links" >&2
"$bin/railhead_node_bench" real-nics --root / --out "$OUT/lines" --rounds "$rounds"
