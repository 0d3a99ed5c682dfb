#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE -T leaf tests/guest/routed.sh
#
# A node with networks of its own behind the leaf switch, a /64 of IPv6 on one rail, a /26 on the other: pods' addresses, routes
# and probes. Other nodes' addresses are those of a router further away. Then the second rail has a /31, whose only address
# returns at once to the VF that had it, and to another one after its delay.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
readonly LIMIT=120
# Of the node with index 5: its routers, and its first pods' addresses. rail1 begins with the probe endpoint's. Of node 9: a pod's.
router=(fd00:100:0:5::1 10.200.1.126) own=(fd00:100:0:5::2/64 10.200.1.66/26) far=(fd00:100:0:9::2 10.200.2.66)

leaf() {
    # The switch checks its addresses for duplicates, for as long as three seconds, while the node begins to ask for them.
    ip netns add leaf && ip netns exec leaf sh -c 'echo 3 >/proc/sys/net/ipv6/conf/default/dad_transmits' || return
    leaf_router 100 "${router[0]}/64" 200 "${router[1]}/26" || return
    ip -n leaf link add spine type dummy && ip -n leaf address add "${far[0]}/64" dev spine nodad &&
        ip -n leaf address add "${far[1]}/26" dev spine && ip -n leaf link set spine up
}
write_fabric() { # FILTER
    # shellcheck disable=SC2016 # expanded by jq
    fabric '.nodes = { ($node): 5 } | .rails |= [
            .[0] + { vlan: 100, subnet: "fd00:100::/48", nodeSubnet: 64, gateway: "first", probeAddresses: "last" },
            .[1] + { vlan: 200, subnet: "10.200.0.0/20", nodeSubnet: 26, gateway: "last", probeAddresses: "first" } ]
        | .rails[] |= (del(.nodeRanges) + { softRoce: true })
        | .reachability = { intervalSeconds: 1, podSeconds: 1, paths: 1 }
        | .pools = [ range(2) | { resource: "railhead.io/rail\(.)", rails: ["rail\(.)"], ncclConfig: "required" } ] | '"$1"
}
start() {
    local pf
    modprobe -a rdma_rxe ib_uverbs dummy && leaf || return
    for pf in 0 1; do
        make_vfs "pf$pf" 2 && give_vf_mac "pf$pf" 0 "02:00:00:00:0$pf:00" && give_vf_mac "pf$pf" 1 "02:00:00:00:0$pf:01" || return
    done
    write_fabric . && kubelet_start && daemon_start 0 && offers rail0 2 && offers rail1 2
}
rail_is() { railctl reachability -o json | jq -e --arg rail "$1" '.rails[] | select(.rail == $rail) | .state == "reachable" and .gateway.answers'; }
pod_is() { railctl reachability -o json | jq -e --arg rail "$1" '[.pods[] | select(.rail == $rail) | .state] == ["reachable"]'; }
has_address() { ip -n "$1" -j address show dev net1 | jq -e --arg a "$2" 'any(.[0].addr_info[]; "\(.local)/\(.prefixlen)" == $a)'; }
# leads POD ADDRESS ROUTER WORD...: `ip route get`, by source or by interface.
leads() {
    local pod=$1 to=$2 by=$3
    shift 3
    ip -n "$pod" -j route get "$to" "$@" | jq -e --arg by "$by" '.[0] | .dev == "net1" and .gateway == $by'
}
# Everything but the router is asked for through it: nothing else is a neighbour.
neighbours_are() { [ "$(ip -n "$1" -j neigh show dev net1 | jq -r '.[] | select(.state | index("FAILED") | not).dst' | grep -v ^fe80 | sort -u)" = "$2" ]; }

check 'a node with networks of its own' start
[ "$failures" = 0 ] || { cat "$OUT"/*.log; finish; }
before=$(world)
for i in 0 1; do
    check "rail$i: its router answers the probes" within "$LIMIT" rail_is "rail$i" || railctl reachability --all
    check "rail$i: a VF" allocate "rail$i" 1
    vf=${devices[0]}
    check "rail$i: a pod" pod pod1
    check '... ADD' cni add pod1 "$vf"
    check "... has ${own[i]}" has_address pod1 "${own[i]}"
    check '... leads to the other nodes through its router, by source' leads pod1 "${far[i]}" "${router[i]}" from "${own[i]%/*}"
    check '... by interface' leads pod1 "${far[i]}" "${router[i]}" oif net1
    check '... as traffic that is bound to nothing' leads pod1 "${far[i]}" "${router[i]}"
    check '... and reaches them' within 60 ip netns exec pod1 ping -c 1 -W 5 "${far[i]}"
    check '... the router is its only neighbour' neighbours_are pod1 "${router[i]}" || ip -n pod1 neigh
    check '... its probes reach the router' within "$LIMIT" pod_is "rail$i" || railctl reachability --all
    check '... railctl nccl verify' railctl nccl verify pod1
    check '... CHECK' cni check pod1 "$vf"
    check '... DEL' cni del pod1 "$vf"
    check '... its namespace goes' ip netns del pod1
    check '... the device is free again' release "rail$i" "$vf"
done

# A network of two addresses, one of which is the router's. After the second pod everybody waits for ten minutes, but for the
# same VF. (Before, there is no delay: it would count for addresses that the node has just got, too.)
two_addresses() { # FILTER
    write_fabric '.rails[1] |= (del(.probeAddresses) + { subnet: "10.200.16.0/24", nodeSubnet: 31, gateway: "other" }) | '"$1"
}
check 'a /31' two_addresses .
check '... of the router, too' ip -n leaf address add 10.200.16.10/31 dev rail200
vf=$(vf_pci pf1 0) other=$(vf_pci pf1 1)
for name in pod2 pod3 pod4; do
    check "$name" pod "$name"
    check '... ADD' cni add "$name" "$vf"
    check '... has the address' has_address "$name" 10.200.16.11/31
    check '... leads to the other nodes through its router' leads "$name" 10.200.16.33 10.200.16.10
    check '... which answers' within 60 ip netns exec "$name" ping -c 1 -W 5 10.200.16.10
    check '... DEL' cni del "$name" "$vf"
    [ "$name" != pod3 ] || check 'from now on released addresses have a delay' two_addresses '.addresses = { conflictProbeMs: 0 }'
done
refused() { ! cni add pod2 "$other" >/tmp/refused 2>&1; }
check 'another VF has to wait' refused
check '... and hears how long' grep -q 'no free address.*free again in [0-9]* s' /tmp/refused || cat /tmp/refused
check '... DEL' cni del pod2 "$other"
for name in pod2 pod3 pod4; do check "$name ends" ip netns del "$name"; done
unchanged() { diff <(echo "$before") <(world); }
check 'all is as before' eventually unchanged
check '... nothing is left' nothing_left
check 'the daemon ends' daemon_end 0
[ "$failures" = 0 ] || cat "$OUT"/*.log
finish
