#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD tests/guest/hotplug.sh
#
# railheadd on real SR-IOV NICs that change under it: VFs made and removed, drivers unbound
# and bound, a PF renamed, its link cut. The kernel's events report it: the resync is an hour.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"

# The doctor's verdict on one check, and a text that is in it.
doctor() { railctl doctor -o json | jq -e --arg id "$1" --arg status "$2" --arg text "${3:-}" \
    '.checks[] | select(.id == $id) | .status == $status and (.found | contains($text))'; }

registered_once() { times 0 '"msg":"registered with kubelet".*"railhead.io/'"$1"'"' 1; }

node() {
    # igb takes its link down whenever the number of VFs changes: errorRate would call that a link that flaps.
    make_vfs pf0 2 || return
    ip link set pf1 up && within 60 is_up pf1 || return
    fabric '. + { pools: [ range(2) | { resource: "railhead.io/rail\(.)", rails: ["rail\(.)"], ncclConfig: "off" } ],
                  health: { intervalSeconds: 1, link: { downAfter: 1, upAfter: 1 }, errorRate: false } }' || return
    echo '{ "accelerators": { "vendors": ["1234:0380"] } }' >/etc/railhead/topology.json || return
    kubelet_start && daemon_start 0 || return
    within 60 registered_once rail0 && within 60 registered_once rail1
}
check 'railheadd serves both rails' node
[ "$failures" = 0 ] || finish
check 'rail0 has its two VFs' offers rail0 2

# A PF without VFs is no VF; then it gets some.
check 'rail1 has none yet' has rail1 0 Healthy
check 'VFs are made on rail1' make_vfs pf1 3
check 'and offered, without a restart' offers rail1 3

vf=$(vf_pci pf1 1)
echo "$vf" >/sys/bus/pci/drivers/igbvf/unbind
check 'a VF without a driver is not offered' offers rail1 2
echo "$vf" >/sys/bus/pci/drivers/igbvf/bind
check 'with its driver it is again' offers rail1 3

echo 0 >/sys/class/net/pf1/device/sriov_numvfs
check 'VFs that were removed are not offered' offers rail1 0
check 'railctl tells of them' within 60 sh -c 'railctl health | grep -q "vfCount: PF pf1"'
check 'the doctor, too' doctor sriov.vfs failure 'pf1'
check 'VFs are made anew' make_vfs pf1 3
check 'and offered' offers rail1 3

# On a real sysfs, configuration space and netlink.
check 'the doctor knows both rails' doctor fabric.rails ok 'rail1: pf1'
check 'and their VFs' doctor sriov.vfs ok 'pf1 (0000:'
check 'reads what SR-IOV says of ARI' doctor sriov.ari ok 'ARI'
check 'and that the IOMMU translates' doctor pci.iommu warning 'the IOMMU translates (DMA'
check 'finds the bridges between NICs and GPUs' doctor pci.acs ok ': no ACS'
check 'asks the PF for the limits of its VFs' doctor sriov.bandwidth note '3 of them without a limit'
check 'and the port for DCB, which igb has not' doctor qos.pfc skipped 'its driver has no DCB'
deny 'igb is no RDMA device: that is a failure' railctl doctor --only node.modules
check 'which can be left out' railctl doctor --skip node.modules

# pf0's neighbours do not notice any of it.
check 'rail0 is registered once' registered_once rail0
check 'rail1 is, too: the stream has stayed' registered_once rail1

# The PF goes by another name: fabric.json knows it as pf0.
ip link set pf0 down && ip link set pf0 name other0 && ip link set other0 up
check 'a PF that was renamed is not the rail any more' offers rail0 0
ip link set other0 down && ip link set other0 name pf0 && ip link set pf0 up
check 'and is under its name' offers rail0 2

ip link set pf0 down
check 'a PF that is down makes its VFs unhealthy' unhealthy rail0 2
check 'railctl says why' sh -c 'railctl health | grep -q "link: PF pf0"'
deny 'and that not all is well' railctl health
ip link set pf0 up
check 'it is up, they are well' offers rail0 2
check 'railctl, too' railctl health
check 'railctl remembers it' sh -c 'railctl health --history | grep -q Unhealthy'

check 'railheadd ends on SIGTERM' daemon_end 0

# One VF that is bound anew again and again, as railhead itself does for a MAC: the list has all others every time.
readonly LISTS=60
rebind() {
    while :; do
        echo "$vf" >/sys/bus/pci/drivers/igbvf/unbind
        echo "$vf" >/sys/bus/pci/drivers/igbvf/bind
        echo >>/tmp/rebinds
    done
}
lists() {
    local i others
    others=$(railheadd --list | jq -c --arg vf "$vf" '[.resources[].devices[].id | select(. != $vf)]') || return
    [ "$(jq length <<<"$others")" = 4 ] || { echo "there are $others"; return 1; }
    for ((i = 0; i < LISTS; i++)); do
        railheadd --list >/tmp/list 2>/tmp/list-errors || { cat /tmp/list-errors; return 1; }
        jq -e --arg vf "$vf" --argjson others "$others" '[.resources[].devices[].id | select(. != $vf)] == $others' /tmp/list || return
        [ ! -s /tmp/list-errors ] || { cat /tmp/list-errors; return 1; }
    done
}
vf=$(vf_pci pf1 1)
rebind 2>/dev/null &
rebinder=$!
check 'a VF that loses its driver costs no list anything else' lists
kill "$rebinder"
check '... it was bound anew meanwhile' test "$(wc -l </tmp/rebinds)" -gt 10
finish
