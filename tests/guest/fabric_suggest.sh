#!/bin/bash
# Runs in both guests of a pair: tests/system/faults/run.sh --pair -b BUILD -T joined -m 640 tests/guest/fabric_suggest.sh
#
# Nobody describes the fabric here: each node observes itself and hears its leaf switches, the reports of both give
# one fabric.json, and railheadd and ADD use that file as it is. Then the pods reach each other on each rail. Ports of
# leaf0 put untagged frames into VLAN 100, those of leaf1 take frames of VLAN 201 only. Each guest has one half of both
# leaf switches, and a wire joins the halves.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
# shellcheck source=tests/system/faults/leaf_switches.sh
. "$SRC/tests/system/faults/leaf_switches.sh"
readonly FABRIC=/etc/railhead/fabric.json OTHER=$((1 - NODE)) PORT=swp$((NODE + 1)) LIMIT=120

# ---- what the site has -------------------------------------------------------------------
# leaf N VLAN: this guest's half of leaf switch N; the gateway is in node0's half.
leaf() {
    local leaf=leaf$1
    ip netns add "$leaf" && ip link set "leaf$1" netns "$leaf" name "$PORT" && ip link add link leaf2 name "wire$1" type vlan id "$((10 + $1))" &&
        ip link set "wire$1" netns "$leaf" && bridge_of "$leaf" && plug_in "$leaf" "wire$1" "$2" || return
    [ "$NODE" != 0 ] || gateway_of "$leaf" "$2" "10.10$1.0.254/24"
}
# host N: what the host itself has on pfN, as its operator set it up.
host() {
    make_vfs "pf$1" 2 && give_vf_mac "pf$1" 0 "02:00:00:0$NODE:0$1:00" && give_vf_mac "pf$1" 1 "02:00:00:0$NODE:0$1:01" &&
        rdma link add "rxe_pf$1" type rxe netdev "pf$1"
}
addresses() { # N NETDEV
    ip address add "10.10$1.0.$((NODE + 1))/24" dev "$2" && ip route add 10.96.0.0/11 via "10.10$1.0.254" dev "$2" table "$((10 + $1))"
}
# node1's port of leaf1 has the wrong VLAN at first.
site() {
    switches_ready && modprobe -a 8021q rdma_rxe ib_uverbs && ip link set leaf2 up && leaf 0 100 && leaf 1 201 || return
    plug_in leaf0 "$PORT" && bridge -n leaf0 vlan add dev "$PORT" vid 100 pvid untagged && plug_in leaf1 "$PORT" "$((201 + NODE))" || return
    host 0 && addresses 0 pf0 && host 1 || return
    mkdir -p /etc/railhead && echo '{ "accelerators": { "vendors": ["1234:0380"] } }' >/etc/railhead/topology.json || return
    lldpd_start 0
    lldpd_start 1
}

# It has the right one, and the host an address there.
site_corrected() {
    bridge -n leaf1 vlan del dev "$PORT" vid "$((201 + NODE))" && bridge -n leaf1 vlan add dev "$PORT" vid 201 &&
        ip link add link pf1 name pf1.201 type vlan id 201 && ip link set pf1.201 up && addresses 1 pf1.201
}

# ---- the fabric --------------------------------------------------------------------------
# Of the site as it is NOW: wrong or right.
observed() { railctl fabric suggest -o json --listen 600 >"$SYNC/$1.$NODE"; }
heard() { # NOW VLAN: of leaf1's port
    jq -e --arg port "$PORT" --argjson vlan "$2" '[.observations[0].pfs[] | [.netdev, .lldp.systemName, .lldp.portId, .lldp.portVlan, .lldp.vlans]] ==
        [["pf0", "leaf0", $port, 100, [100]], ["pf1", "leaf1", $port, null, [$vlan]]]' "$SYNC/$1.$NODE"
}
observed_and_heard() { observed right && heard right 201; }
suggested() { railctl fabric suggest "$SYNC/$1.$NODE" "$SYNC/$1.$OTHER" >/tmp/fabric.json 2>"$OUT/$1.log"; }
says() { grep -Fx "$2" "$OUT/$1.log"; } # NOW LINE
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
    # In PCI order: the first is of rail0.
    pod trainer && allocate roce 2 && add 0 && add 1
}
address_of() { jq -r '.ips[0].address | sub("/.*"; "")' "/tmp/add.$1"; }
# pings RAIL: the other node's pod.
pings() { within "$LIMIT" ip netns exec trainer ping -c 1 -W 5 -I "$(address_of "$1")" "$(await "address.$1.$OTHER")"; }
frames() { on_wire "wire-$1.pcap" ether src "$(ip -n trainer -j link show "net$1" | jq -r '.[0].address')" "${@:2}"; } # RAIL FILTER...
delete() { cnidriver del -conf /etc/cni/net.d/rails.conf -id trainer -netns /run/netns/trainer -ifname "net$1" -cap "{\"deviceID\":\"${devices[$1]}\"}"; }

check 'a node with two rails and its leaf switches' site
check 'it observes itself, and hears its switches' observed wrong
check '... both, and the VLANs of the ports' heard wrong "$((201 + NODE))"
reach observed
[ "$failures" = 0 ] || { cat "$SYNC/wrong.$NODE" "$OUT"/lldpd-*.log; finish; }
deny 'ports of one rail in two VLANs are a contradiction' suggested wrong
check '... which names the node' says wrong 'contradiction: rail1: node1: the VLAN of the switch port is 202 (tagged), on other nodes 201 (tagged)'
check '... the VLAN is that of the other port' says wrong 'guess: rail1: vlan 201 (medium): the switch port names it and no VLAN of untagged frames'
check 'the port gets the right VLAN, and the host an address in it' site_corrected
check '... which the node observes, and hears' within "$LIMIT" observed_and_heard
reach corrected
check 'the reports of both nodes give a fabric, which nothing contradicts' suggested right
check '... one rail is untagged' says right 'guess: rail0: no vlan (medium): the switch port puts untagged frames into VLAN 100'
check '... the other one is not' says right "guess: rail1: vlan 201 (medium): the host's addresses are on a VLAN device of the PF"
check '... it is the same on both nodes' published
check '... in whatever order the reports are' cmp /tmp/fabric.json "$FABRIC"
check '... railctl config check accepts it' railctl config check "$FABRIC"
cat "$OUT/right.log" "$FABRIC"
check '... rails by PF, switch and subnet' fabric_has '[.rails[] | "\(.name) \(.pf) \(.expectedSwitches) \(.subnet) \(.gateway) \(.mtu) \(.vlan)"] ==
    ["rail0 pf0 [\"leaf0\"] 10.100.0.0/24 10.100.0.254 1500 null", "rail1 pf1 [\"leaf1\"] 10.101.0.0/24 10.101.0.254 1500 201"]'
check '... soft RoCE, VFs and nodes' fabric_has 'all(.rails[]; .softRoce) and .provision.vfs == 2 and .nodes == { node0: 0, node1: 1 }'
[ "$failures" = 0 ] || finish

kubelet_start && daemon_start 0
check 'railheadd offers the VFs of both rails by that very file' offers roce 4
check 'a pod gets a VF of each rail' start_pod
for rail in 0 1; do post "address.$rail.$NODE" "$(address_of "$rail")"; done
for rail in 0 1; do check "... and reaches the other node's pod on rail$rail" pings "$rail"; done
check '... its frames on rail1 are in the VLAN' within "$LIMIT" frames 1 and vlan 201
deny '... all of them' frames 1 and not vlan
deny '... on rail0 none' frames 0 and vlan
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
