#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE -T leaf -a ipv6.disable=1 tests/guest/no_ipv6.sh kernel
#
# usage: no_ipv6_guest.sh kernel|sysctl
#   kernel   the kernel was booted with ipv6.disable=1
#   sysctl   net.ipv6.conf.*.disable_ipv6=1, on the host and in each pod
# A node without IPv6: railheadd with probes, the whole life of a pod on two rails, CHECK, the next pod. The MTU of the
# second rail is below IPv6's 1280, so that its links have no IPv6 in any case.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
readonly LIMIT=120 MODE=$1

without_ipv6() { # in the caller's network namespace
    if [ "$MODE" = kernel ]; then [ ! -e /proc/sys/net/ipv6 ]; else echo 1 | tee /proc/sys/net/ipv6/conf/{all,default}/disable_ipv6; fi
}
start() {
    modprobe -a rdma_rxe ib_uverbs && without_ipv6 && leaf_router 100 10.100.0.254/24 200 10.101.0.254/24 || return
    # The switch answers with frames that the second rail takes.
    ip -n leaf link set rail200 mtu 1000
    make_vfs pf0 2 && make_vfs pf1 2 || return
    local pf
    for pf in pf0 pf1; do give_vf_mac "$pf" 0 "02:00:00:00:0${pf#pf}:00" && give_vf_mac "$pf" 1 "02:00:00:00:0${pf#pf}:01" || return; done
    fabric '.rails |= [ .[0] + { vlan: 100, mtu: 1400 }, .[1] + { vlan: 200, mtu: 1000 } ]
        | .rails[] += { softRoce: true }
        | .rails[0].probeAddresses = { node0: "10.100.0.1" } | .rails[1].probeAddresses = { node0: "10.101.0.1" }
        | . + { addresses: { conflictProbeMs: 50, reuseDelaySeconds: 0 }, reachability: { intervalSeconds: 1, podSeconds: 1, paths: 1 },
            pools: [ range(2) | { resource: "railhead.io/rail\(.)", rails: ["rail\(.)"], ncclConfig: "required" } ] }' || return
    kubelet_start && daemon_start 0 && offers rail0 2 && offers rail1 2
}
pod_without_ipv6() { pod "$1" && ip netns exec "$1" bash -c "$(declare -f without_ipv6); MODE=$MODE without_ipv6"; }
rail_is() { railctl reachability -o json | jq -e --arg rail "$1" '.rails[] | select(.rail == $rail) | .state == "reachable" and .gateway.answers'; }

check 'a node without IPv6 serves both rails' start
[ "$failures" = 0 ] || { cat "$OUT"/*.log; finish; }
check '... has nothing of it' test "$(ip -6 address show 2>/dev/null | grep -c inet6)" = 0
for rail in rail0 rail1; do check "... probes $rail: its gateway answers" within "$LIMIT" rail_is "$rail" || railctl reachability --all; done
before=$(world)

# Two pods, one after the other, on the same devices; each has a NIC of one rail.
for rail in rail0 rail1; do
    check "a VF of $rail is given to a pod" allocate "$rail" 1
    vf=${devices[0]}
    for name in first second; do
        check "$name pod of $rail" pod_without_ipv6 "$name"
        check '... ADD' cni add "$name" "$vf"
        check '... CHECK' cni check "$name" "$vf"
        check '... its gateway answers' within 60 ip netns exec "$name" ping -c 1 -W 5 "10.10${rail#rail}.0.254"
        check '... it has a GID, and no IPv6' test "$(ip -n "$name" -j address show dev net1 | jq -c '[.[0].addr_info[].family] | unique')" = '["inet"]'
        check '... railctl nccl verify' railctl nccl verify "$name"
        check '... DEL' cni del "$name" "$vf"
        check '... its namespace goes' ip netns del "$name"
    done
    check '... the device is free again' release "$rail" "$vf"
done
unchanged() { diff <(echo "$before") <(world); }
# railheadd may be resetting an idle VF at this moment.
check 'all is as before' eventually unchanged
check '... nothing is left' nothing_left

# An IPv6 address: ADD switches IPv6 on for this interface, where the kernel has it. Otherwise it says why not.
six() { jq -c '. + { ipam: { type: "static", addresses: [ { address: "fd00::5/64" } ] }, ncclConfig: "off" }' /etc/cni/net.d/rails.conf; }
add_six() {
    ln -sf /mnt/cni/static /opt/cni/bin/static
    six >/etc/cni/net.d/six.conf
    cnidriver add -conf /etc/cni/net.d/six.conf -id third -netns /run/netns/third -ifname net1 -cap "{\"deviceID\":\"${devices[0]}\"}" >/tmp/six 2>&1
}
check 'a VF is given to a third pod' pod_without_ipv6 third && check '... of rail0' allocate rail0 1
if [ "$MODE" = kernel ]; then
    deny 'ADD of an IPv6 address fails' add_six
    check '... with the reason' grep -q 'ipv6.disable=1' /tmp/six
else
    check 'ADD of an IPv6 address' add_six
    check '... which the pod has' sh -c "ip -n third -6 -o address show dev net1 | grep -q fd00::5"
    check '... with IPv6 off elsewhere' grep -qx 1 <(ip netns exec third cat /proc/sys/net/ipv6/conf/all/disable_ipv6)
fi
[ "$failures" = 0 ] || cat /tmp/six
check '... DEL' cni del third "${devices[0]}"
check '... nothing is left' nothing_left
check 'the daemon ends' daemon_end 0
[ "$failures" = 0 ] || cat "$OUT"/*.log
finish
