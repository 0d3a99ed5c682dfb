#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -A arm64 -T leaves -b build/arm64 tests/guest/arm64.sh [UNIT TEST...]
#
# The programs of arm64 on a kernel of arm64: two pods, each with a VF of a PF of its own, reach each other over the
# wire, also by soft RoCE. DEL leaves nothing. Unit tests run here and not under qemu-user, which refuses timers
# that signal a thread: those end waiting for a lock.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"

node() {
    modprobe -a rdma_rxe ib_uverbs && ip link add switch type bridge && ip link set switch up || return
    local i
    for i in 0 1; do
        ip link set "leaf$i" up master switch && make_vfs "pf$i" 1 && give_vf_mac "pf$i" 0 "02:00:00:00:00:0$i" || return
    done
}
network() { # DEVICE
    jq -n --arg device "$1" '{ cniVersion: "1.0.0", name: "rails", type: "railhead", deviceID: $device, softRoce: true, ncclConfig: "off",
        linkTimeoutSeconds: 100, ipam: { type: "railhead-ipam", subnet: "10.10.0.0/24", reuseDelaySeconds: 0 } }'
}
call() { # VERB NUMBER: for the pod of this number, which has a VF of the PF of the same number
    network "$(cat "/tmp/vf$2")" | CNI_COMMAND=$1 CNI_CONTAINERID=pod$2 CNI_NETNS=/run/netns/pod$2 CNI_IFNAME=net1 CNI_PATH=$BUILD/bin \
        railhead >"/tmp/answer$2" || { cat "/tmp/answer$2"; return 1; }
}
address() { jq -re '.ips[0].address | split("/")[0]' "/tmp/answer$1"; }
rdma_write() { # from pod 0 to pod 1
    local index0 index1 server
    index0=$(gid_index pod0 rxe_pf0v0 "$(address 0)") && index1=$(gid_index pod1 rxe_pf1v0 "$(address 1)") || return
    ip netns exec pod1 timeout 200 ib_write_bw -d rxe_pf1v0 -x "$index1" "${gentle[@]}" &
    server=$!
    within 60 listens pod1 18515 &&
        ip netns exec pod0 timeout 120 ib_write_bw -d rxe_pf0v0 -x "$index0" "${gentle[@]}" "$(address 1)" && wait "$server"
}
held() { railctl ipam list --no-headers | grep -cw held; }
world() {
    ip -d -j link show | jq -c 'sort_by(.ifname)[] | [.ifname, .address, .mtu, (.flags - ["LOWER_UP"]), .vfinfo_list]'
    rdma link
}

check 'the machine is of arm64' test "$(uname -m)" = aarch64
for name in "$@"; do check "$name" "$BUILD/bin/$name"; done
check 'two PFs with a VF each, and a switch' node
before=$(world)
for i in 0 1; do
    vf_pci "pf$i" 0 >"/tmp/vf$i"
    check "pod $i" pod "pod$i"
    check '... ADD' call ADD "$i"
done
check 'the pods have different addresses' test "$(address 0)" != "$(address 1)"
check 'one reaches the other' ip netns exec pod0 ping -c 3 -W 30 "$(address 1)"
check '... by RDMA, too' rdma_write
check 'railctl shows both' test "$(railctl journal list --no-headers | wc -l)" = 2
check '... their addresses, too' test "$(held)" = 2
check 'railheadd has nothing to repair' railheadd --reconcile-once
check '... and the pods are still connected' ip netns exec pod1 ping -c 1 -W 30 "$(address 0)"
for i in 0 1; do check "DEL of pod $i" call DEL "$i"; done
check 'all is as before' test "$(world)" = "$before" || diff <(echo "$before") <(world)
check '... nothing is left' nothing_left
check '... nobody has an address' test "$(held)" = 0
finish
