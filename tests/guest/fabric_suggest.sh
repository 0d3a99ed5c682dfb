#!/bin/bash
# Runs in both guests of a pair: tests/system/faults/run.sh --pair -b BUILD -T joined -m 640 tests/guest/fabric_suggest.sh
#
# Nobody describes the fabric here: each node observes itself and hears its leaf switches, the reports of both give
# one fabric.json, and railheadd and ADD use that file as it is. Then the pods reach each other on each rail. Each
# guest has one half of both leaf switches, and a wire joins the halves.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
# shellcheck source=tests/system/faults/leaf_switches.sh
. "$SRC/tests/system/faults/leaf_switches.sh"
readonly FABRIC=/etc/railhead/fabric.json OTHER=$((1 - NODE)) LIMIT=120

# ---- what the site has -------------------------------------------------------------------
# leaf N: this guest's half of leaf switch N, with this node at port swp1 or swp2; the gateway is in node0's half.
leaf() {
    local leaf=leaf$1 port=swp$((NODE + 1))
    ip netns add "$leaf" && ip link set "leaf$1" netns "$leaf" name "$port" && ip link add link leaf2 name "wire$1" type vlan id "$((10 + $1))" &&
        ip link set "wire$1" netns "$leaf" || return
    ip -n "$leaf" -batch - <<END || return
link set lo up
link add name switch type bridge mcast_snooping 0 stp_state 0
link set dev $port master switch up
link set dev wire$1 master switch up
link set switch up
END
    [ "$NODE" != 0 ] || ip -n "$leaf" address add "10.10$1.0.254/24" dev switch
}
# host N: what the host itself has on pfN, as its operator set it up.
host() {
    make_vfs "pf$1" 2 && give_vf_mac "pf$1" 0 "02:00:00:0$NODE:0$1:00" && give_vf_mac "pf$1" 1 "02:00:00:0$NODE:0$1:01" || return
    rdma link add "rxe_pf$1" type rxe netdev "pf$1" && ip address add "10.10$1.0.$((NODE + 1))/24" dev "pf$1" &&
        ip route add 10.96.0.0/11 via "10.10$1.0.254" dev "pf$1" table "$((10 + $1))"
}
site() {
    switches_ready && modprobe -a 8021q rdma_rxe ib_uverbs && ip link set leaf2 up && leaf 0 && leaf 1 && host 0 && host 1 || return
    mkdir -p /etc/railhead && echo '{ "accelerators": { "vendors": ["1234:0380"] } }' >/etc/railhead/topology.json || return
    lldpd_start 0
    lldpd_start 1
}

# ---- the fabric --------------------------------------------------------------------------
observed() { railctl fabric suggest -o json --listen 600 >"$SYNC/report.$NODE"; }
heard() { jq -c '[.observations[0].pfs[] | "\(.netdev) \(.lldp.systemName) \(.lldp.portId)"]' "$SYNC/report.$NODE"; }
suggested() { railctl fabric suggest "$SYNC/report.$NODE" "$SYNC/report.$OTHER" >/tmp/fabric.json 2>"$OUT/suggest.log"; }
# One file for all nodes, as a cluster has it.
published() {
    [ "$NODE" = 1 ] || { cp /tmp/fabric.json "$SYNC/fabric.new" && mv "$SYNC/fabric.new" "$SYNC/fabric.json"; } || return
    within "$LIMIT" test -e "$SYNC/fabric.json" && cp "$SYNC/fabric.json" "$FABRIC"
}
fabric_has() { jq -e "$1" "$FABRIC"; }

# ---- the pods ----------------------------------------------------------------------------
add() { # RAIL
    cnidriver add -conf /etc/cni/net.d/rails.conf -id trainer -netns /run/netns/trainer -ifname "net$1" -cap "{\"deviceID\":\"${devices[$1]}\"}" >"/tmp/add.$1"
}
start_pod() {
    sed -i "s/\"type\"/\"linkTimeoutSeconds\": $LIMIT, &/" /etc/cni/net.d/rails.conf
    # In PCI order: the first is of rail0.
    pod trainer && allocate roce 2 && add 0 && add 1
}
address_of() { jq -r '.ips[0].address | sub("/.*"; "")' "/tmp/add.$1"; }
# pings RAIL: the other node's pod.
pings() { within "$LIMIT" ip netns exec trainer ping -c 1 -W 5 -I "$(address_of "$1")" "$(await "address.$1.$OTHER")"; }
delete() { cnidriver del -conf /etc/cni/net.d/rails.conf -id trainer -netns /run/netns/trainer -ifname "net$1" -cap "{\"deviceID\":\"${devices[$1]}\"}"; }

check 'a node with two rails and its leaf switches' site
check 'it observes itself, and hears its switches' observed
check '... both' test "$(heard)" = "[\"pf0 leaf0 swp$((NODE + 1))\",\"pf1 leaf1 swp$((NODE + 1))\"]"
reach observed
[ "$failures" = 0 ] || { cat "$SYNC/report.$NODE" "$OUT"/lldpd-*.log; finish; }
check 'the reports of both nodes give a fabric, which nothing contradicts' suggested
check '... it is the same on both nodes' published
check '... in whatever order the reports are' cmp /tmp/fabric.json "$FABRIC"
check '... railctl config check accepts it' railctl config check "$FABRIC"
cat "$OUT/suggest.log" "$FABRIC"
check '... rails by PF, switch and subnet' fabric_has '[.rails[] | "\(.name) \(.pf) \(.expectedSwitches) \(.subnet) \(.gateway) \(.mtu)"] ==
    ["rail0 pf0 [\"leaf0\"] 10.100.0.0/24 10.100.0.254 1500", "rail1 pf1 [\"leaf1\"] 10.101.0.0/24 10.101.0.254 1500"]'
check '... soft RoCE, VFs and nodes' fabric_has 'all(.rails[]; .softRoce) and .provision.vfs == 2 and .nodes == { node0: 0, node1: 1 }'
[ "$failures" = 0 ] || finish

kubelet_start && daemon_start 0
check 'railheadd offers the VFs of both rails by that very file' offers roce 4
check 'a pod gets a VF of each rail' start_pod
for rail in 0 1; do post "address.$rail.$NODE" "$(address_of "$rail")"; done
for rail in 0 1; do check "... and reaches the other node's pod on rail$rail" pings "$rail"; done
reach pinged
check '... no part has changed the file' cmp "$SYNC/fabric.json" "$FABRIC"
cabled_right() { railctl lldp -o json | jq -e 'all(.rails[]; .cabling == "right")'; }
check 'the cables are those that the fabric expects' within "$LIMIT" cabled_right
again() { railctl fabric suggest 2>"$OUT/again.log" | cmp - "$FABRIC"; }
check 'a second run on the node has nothing to add' again
for rail in 0 1; do check "DEL of rail$rail" delete "$rail"; done
check 'railheadd ends' daemon_end 0
[ "$failures" = 0 ] || { tail -n 20 "$OUT"/*.log; ip -n trainer address; ip -n trainer route show table all; }
finish
