#!/bin/bash
# selftest.sh - runs in both guests of run-pair.sh, leaf on node 0: what the tests and
# the demo presume of the test bed, with plain commands and none of our programs.
#   tests/support/vm/run-pair.sh -t 300 -0 leaf tests/support/vm/selftest.sh
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
other=$((1 - NODE))

# attach RAIL: VF 0 of pfRAIL into namespace "pod" as net(RAIL + 1), in the rail's VLAN.
attach() {
    local i=$1 vf
    vf=$(vf_netdev "pf$i" 0)
    ip link set "pf$i" vf 0 vlan $((100 + 100 * i)) || return
    ip link set "$vf" netns pod name "net$((i + 1))" || return
    ip -n pod -batch - <<END
address add 10.10$i.0.$((NODE + 1))/24 dev net$((i + 1))
link set net$((i + 1)) up
route add 10.96.0.0/11 via 10.10$i.0.254 dev net$((i + 1)) table $((100 + i))
rule add from 10.10$i.0.$((NODE + 1)) lookup $((100 + i))
END
}

ping_from() { within 60 ip netns exec pod ping -c 1 -W 1 -I "$1" "$2"; }

# rdma RAIL: a write from node 0 to node 1.
rdma() {
    local i=$1 index
    index=$(gid_index pod "rxe$i" "10.10$i.0.$((NODE + 1))") || return
    if [ "$NODE" = 1 ]; then
        ip netns exec pod timeout 120 ib_write_bw -d "rxe$i" -x "$index" -p $((18515 + i)) "${gentle[@]}" &
        local server=$!
        within 60 listens pod $((18515 + i)) && post "$attempt"
        wait "$server"
    else
        await "$attempt" && ip netns exec pod timeout 120 \
            ib_write_bw -d "rxe$i" -x "$index" -p $((18515 + i)) "${gentle[@]}" "10.10$i.0.2"
    fi
}

for i in 0 1; do
    check "pf$i: NUMA node $i" grep -qx "$i" "/sys/class/net/pf$i/device/numa_node"
    upstream=$(dirname "$(dirname "$(readlink -f "/sys/class/net/pf$i/device")")")
    # shellcheck disable=SC2086 # a pattern
    check "pf$i: a GPU on the same switch" grep -q '^0x0380' $upstream/*/*/class
    check "pf$i: two VFs" make_vfs "pf$i" 2
done
[ "$NODE" = 1 ] || check "leaf router" leaf_router 100 10.100.0.254/24 200 10.101.0.254/24
ip netns add pod && ip -n pod link set lo up
for i in 0 1; do check "rail $i: attached" attach "$i"; done
modprobe -a rdma_rxe rdma_ucm
for i in 0 1; do
    check "rail $i: soft RoCE" ip netns exec pod rdma link add "rxe$i" type rxe netdev "net$((i + 1))"
    check "rail $i: GID" within 60 gid_index pod "rxe$i" "10.10$i.0.$((NODE + 1))"
done
reach attached
for i in 0 1; do
    check "rail $i: gateway" ping_from "net$((i + 1))" "10.10$i.0.254"
    check "rail $i: other node" ping_from "net$((i + 1))" "10.10$i.0.$((other + 1))"
    check "rail $i: RDMA" data_moves "rdma$i" rdma "$i"
done
check "rail 0 to rail 1 of the other node" ping_from 10.100.0.$((NODE + 1)) 10.101.0.$((other + 1))
# Every port of the hub sees all frames: the sender's address tells them apart.
mac=$(ip netns exec pod cat /sys/class/net/net1/address)
check "frames are tagged on the wire" on_wire wire-0.pcap vlan 100 and arp and ether src "$mac"
deny "frames of rail 0 are not in VLAN 200" on_wire wire-0.pcap vlan 200 and ether src "$mac"
[ "$NODE" = 1 ] || check "RoCE v2 is on the leaf's wire" on_wire leaf-0.pcap vlan 100 and udp port 4791
reach done
ip netns del pod
check "the VF comes back, with the pod's name" within 60 test -d /sys/class/net/net1
finish
