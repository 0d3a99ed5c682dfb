#!/bin/bash
# Runs in the guest, by run.sh: tests/system/faults/run.sh tests/guest/reachability.sh
#
# Nodes that probe each other by RDMA, which is soft RoCE on their devices: node0 is this guest with railheadd, node1 a
# second one in a network namespace with a PF of its own, a leaf switch between them. What UDP passes and RDMA does not is
# found, and is well again after its end; who holds the device stands in nobody's way; nothing is left.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
# shellcheck source=tests/system/faults/leaf_switches.sh
. "$SRC/tests/system/faults/leaf_switches.sh"
readonly LIMIT=120

# ---- the nodes ---------------------------------------------------------------------------
write_fabric() { # FILTER
    fabric '.rails |= [ .[0] + { pf: ["pf0", "pf2"], softRoce: true, trafficClass: 104, mtu: 1400,
            probeAddresses: { node0: "10.100.0.1", node1: "10.100.0.2" } } ]
        | . + { pools: [ { resource: "railhead.io/rail0", rails: ["rail0"], ncclConfig: "off" } ],
            reachability: { intervalSeconds: 1, podSeconds: 0, paths: 2, rdma: true } } | '"$1" || return
    mkdir -p /etc/netns/node1/railhead && cp /etc/railhead/fabric.json /etc/netns/node1/railhead/.new &&
        mv /etc/netns/node1/railhead/.new /etc/netns/node1/railhead/fabric.json
}
# at_node1 COMMAND...: in its namespace, with files of its own.
at_node1() { ip netns exec node1 /tmp/node1/enter "$@"; }
prepare_node1() {
    mkdir -p /etc/netns/node1/railhead /run/{railhead,cdi} /var/lib/railhead /tmp/node1/{run,lib,cdi,kubelet} || return
    echo node1 >/etc/netns/node1/railhead/node-name
    printf '%s\n' '#!/bin/bash' 'mount --bind /tmp/node1/run /run/railhead && mount --bind /tmp/node1/lib /var/lib/railhead && mount --bind /tmp/node1/cdi /run/cdi && exec "$@"' >/tmp/node1/enter
    chmod 755 /tmp/node1/enter
    ip netns add node1 && ip link set pf2 netns node1 && ip -n node1 link set pf2 up
}
start_node1() {
    # Not by at_node1, which would be a shell to wait for: $node1 is railheadd itself.
    ip netns exec node1 /tmp/node1/enter railheadd --kubelet-dir /tmp/node1/kubelet --http-address '' >>"$OUT/railheadd-node1.log" 2>&1 &
    node1=$!
}
# leaf: a switch without VLANs, with node0 at port swp1 and node1 at swp2.
leaf() {
    ip netns add leaf && ip link set leaf0 netns leaf name swp1 && ip link set leaf2 netns leaf name swp2 || return
    ip -n leaf -batch - <<END
link set lo up
link add name switch type bridge mcast_snooping 0 stp_state 0
link set dev swp1 master switch up
link set dev swp2 master switch up
address add 10.100.0.254/24 dev switch
link set switch up
END
}
start() {
    switches_ready && modprobe -a rdma_rxe ib_uverbs && leaf && write_fabric . && make_vfs pf0 1 && prepare_node1 &&
        kubelet_start && daemon_start 0 && start_node1 && offers rail0 1
}

# ---- what is said ------------------------------------------------------------------------
report() { "$@" railctl reachability --all -o json; }
# is_well COMMAND...: the peer is reached, by RDMA as well.
is_well() {
    report "$@" | jq -e '.rails[0] | .state == "reachable" and .rdma.device != null and .gateway.answers
        and all(.peers[]; .state == null and .rdmaSent > 0 and .rdmaAnswered == null)'
}
both_well() { is_well env && is_well at_node1; }
# peer_is STATE COMMAND...
peer_is() {
    local state=$1
    shift
    report "$@" | jq -e --arg state "$state" '.rails[0].peers[0].state == $state'
}
udp_is_well() { report "$@" | jq -e '.rails[0].peers[0] | .sent > 0 and .answered == null'; }
rail_says() { report env | jq -r '.rails[0].because' | grep -F -- "$1"; }
metric() { # NAME: its sum
    local fd
    exec {fd}<>/dev/tcp/127.0.0.1/9917 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&"$fd" || return
    awk -v name="$1" 'index($0, name "{") == 1 { sum += $NF } END { print sum + 0 }' <&"$fd"
    exec {fd}>&-
}
more() { [ "$(metric "$1")" -gt "$2" ]; }
everything() {
    report env
    report at_node1
    rdma link
    tail -n 20 "$OUT"/railheadd*.log
}
endpoints_with_rdma() { rdma link show | grep -c "_probe/"; }
has_endpoints() { [ "$(endpoints_with_rdma)" = "$1" ]; }

# ---- the faults --------------------------------------------------------------------------
at_swp2() { tc -n leaf filter add dev swp2 "$1" protocol ip prio "$2" flower ip_proto udp dst_port 4791 "${@:3}"; }
drop_rdma() { tc -n leaf qdisc add dev swp2 clsact && at_swp2 ingress 1 action drop; }
drop_nothing() { tc -n leaf qdisc del dev swp2 clsact; }
count_class() { tc -n leaf qdisc add dev swp2 clsact && at_swp2 ingress 1 ip_tos 104/0xff action ok && at_swp2 ingress 2 action ok; }
# passed PRIO: packets that this filter has seen.
passed_by() { tc -n leaf -s -j filter show dev swp2 ingress | jq "[.[] | select(.pref == $1) | .options.actions[]?.stats.packets // 0] | add // 0"; }
in_class() { [ "$(passed_by 1)" -gt 8 ]; }
carrier_is() { [ "$(cat /sys/class/net/pf0/carrier)" = "$1" ]; }
cut() { cable w0 out && within 60 carrier_is 0; }
repair() { cable w0 in && within 60 carrier_is 1; }

modprobe -a rdma_rxe ib_uverbs
check 'soft RoCE alone' reachability_guest_test
check 'rails with a VLAN' vlan_guest_test
check 'two nodes and a leaf' start
check '... reach each other, by RDMA as well' within "$LIMIT" both_well
[ "$failures" = 0 ] || { everything; finish; }
check '... and say with what' test "$(report env | jq -c '.rails[0].rdma.device')" = '"rxe_pf0_probe"'
railctl reachability --all
check '... railctl has a column for it' grep -q 'rxe_pf0_probe\[' <(railctl reachability -o wide)
sent=$(metric railhead_rail_rdma_probes_total)
check '... metrics count' within "$LIMIT" more railhead_rail_rdma_probes_total "$((sent + 8))"
check '... answers, too' within "$LIMIT" more railhead_rail_rdma_probe_answers_total "$sent"

check "RDMA's packets are counted by class" count_class
check "... they have the rail's" within "$LIMIT" in_class
check '... all of them' test "$(passed_by 2)" = 0
check '... ends' drop_nothing

check 'the leaf drops RDMA alone' drop_rdma
check '... node0 says so' within "$LIMIT" peer_is noRdma env
check '... node1 says so' within "$LIMIT" peer_is noRdma at_node1
check '... UDP is well' udp_is_well env
check '... railctl reachability says why' grep -q 'UDP passes, RDMA does not' <(railctl reachability)
check '... the rail is degraded, not dead' test "$(report env | jq -r '.rails[0].state')" = degraded
check '... and logged' within 60 logged 0 'peers of a rail are faulty.*node1 noRdma'
check '... ends' drop_nothing
check '... all is well again' within "$LIMIT" both_well

check "the endpoint's RDMA device is taken away" timeout 60 rdma link delete rxe_pf0_probe
check '... there is a new one' within "$LIMIT" both_well
check 'the cable is cut' cut
check '... and is in again' repair
check '... all is well again' within "$LIMIT" both_well

# As while a fabric with a new node is rolled out: who is not answered by RDMA must not learn where to ask.
forget_node1() {
    jq 'del(.rails[].probeAddresses.node1)' /etc/railhead/fabric.json >/etc/railhead/.new && mv /etc/railhead/.new /etc/railhead/fabric.json &&
        kill -HUP "${daemons[0]}"
}
not_asked() { report at_node1 | jq -e '.rails[0].peers[0] | .state == null and .sent > 0 and .answered == null and .rdmaSent == null'; }
faulty_at_node1() { grep -c 'node0 noRdma' "$OUT/railheadd-node1.log"; }
# What node1 was about to ask when it was well again is over.
sent=$(metric railhead_rail_rdma_probes_total)
check '... and stays so' within "$LIMIT" more railhead_rail_rdma_probes_total "$((sent + 16))"
check '... at both nodes' within "$LIMIT" both_well
before=$(faulty_at_node1)
check 'node0 does not know of node1 yet' forget_node1
check '... which does not take it for faulty' within "$LIMIT" not_asked
check '... nor has in between' test "$(faulty_at_node1)" = "$before"
check '... until it does' write_fabric .
kill -HUP "${daemons[0]}"
check '... all is well again' within "$LIMIT" both_well

kill -KILL "$node1"
wait "$node1" 2>/dev/null
check 'a railheadd that was killed leaves no RDMA device' within "$LIMIT" has_endpoints 1
start_node1
check '... the next one has its own' within "$LIMIT" both_well

check 'the rail gets a VLAN, in which there is no soft RoCE' write_fabric '.rails[0].vlan = 100'
kill -HUP "${daemons[0]}"
check '... railctl says why' within "$LIMIT" rail_says 'no soft RoCE on VLAN devices'
check '... the VLAN goes, and nobody wants RDMA any more' write_fabric '.reachability.rdma = false'
kill -HUP "${daemons[0]}" "$node1"
no_rdma() { report "$@" | jq -e '.rails[0] | .rdma == null and .state == "reachable"'; }
no_rdma_at_both() { no_rdma env && no_rdma at_node1; }
check '... then there is none' within "$LIMIT" no_rdma_at_both
check '... and no device' within "$LIMIT" has_endpoints 0
check '... until somebody wants it' write_fabric .
kill -HUP "${daemons[0]}" "$node1"
check '... all is well again' within "$LIMIT" both_well

kill -TERM "$node1"
wait "$node1"
check 'railheadd ends on SIGTERM' daemon_end 0
check '... and leaves no device' within "$LIMIT" has_endpoints 0
[ "$failures" = 0 ] || everything
finish
