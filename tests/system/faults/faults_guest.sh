#!/bin/bash
# Runs in the guest, by run.sh: tests/system/faults/run.sh
#
# Faults of cables, leaf switches, VLANs and addresses, on real SR-IOV NICs: node0 is this guest with railheadd,
# kubelet's stand-in and a pod; node1 a second railheadd in a network namespace with PFs of its own; the leaves are
# those of leaf_switches.sh. Of each fault: who says what, what is out of use, that nothing else is, that all is well
# after its end. docs/operate/node-status.md has the table, which has to be this one.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
# shellcheck source=tests/system/faults/leaf_switches.sh
. "$SRC/tests/system/faults/leaf_switches.sh"
readonly HEADING='### On real VFs' LIMIT=120

# ---- the nodes ---------------------------------------------------------------------------
write_fabric() {
    fabric '.rails[0].vlan = 100 | .rails[1].vlan = 200 | .addresses.conflictProbeMs = 1000
        | .rails |= [ .[] | (.subnet | rtrimstr("0/24")) as $net | . + { expectedSwitches: ("leaf" + .name[4:]), mtu: 1400, vlanQoS: 3, trafficClass: 104,
              probeAddresses: { node0: ($net + "1"), node1: ($net + "2") } } | .nodeRanges.node1 = ($net + "20-" + $net + "27") ]
        | . + { pools: [ range(2) | { resource: "railhead.io/rail\(.)", rails: ["rail\(.)"], ncclConfig: "off" } ],
            reachability: { intervalSeconds: 1, podSeconds: 1, paths: 2 },
            health: { intervalSeconds: 1, vfSeconds: 1, counterSeconds: 1,
                errorRate: { upAfter: 2, counters: { carrier_down_count: false, rx_crc_errors: { limit: 100, seconds: 5 } } },
                link: { downAfter: 1, upAfter: 2 } } }'
}
# at_node1 COMMAND...: in its namespace, with files of its own.
at_node1() { ip netns exec node1 /tmp/node1/enter "$@"; }
second_node() {
    local pf
    mkdir -p /etc/netns/node1/railhead /run/{railhead,cdi} /var/lib/railhead /tmp/node1/{run,lib,cdi,kubelet} || return
    cp /etc/railhead/fabric.json /etc/netns/node1/railhead/ && echo node1 >/etc/netns/node1/railhead/node-name
    printf '%s\n' '#!/bin/bash' 'mount --bind /tmp/node1/run /run/railhead && mount --bind /tmp/node1/lib /var/lib/railhead && mount --bind /tmp/node1/cdi /run/cdi && exec "$@"' >/tmp/node1/enter
    chmod 755 /tmp/node1/enter
    ip netns add node1 || return
    for pf in 0 1; do ip link set "pf$((pf + 2))" netns node1 name "pf$pf" && ip -n node1 link set "pf$pf" up || return; done
    at_node1 railheadd --kubelet-dir /tmp/node1/kubelet --http-address '' >"$OUT/railheadd-node1.log" 2>&1 &
}
start() {
    switches_ready && write_fabric || return
    make_vfs pf0 2 && make_vfs pf1 1 && own_counter || return
    leaf_switch 0 100 10.100.0.254/24 && leaf_switch 1 200 10.101.0.254/24 && spine 100 200 || return
    lldpd_start 0
    lldpd_start 1
    kubelet_start && daemon_start 0 && second_node && offers rail0 2 && offers rail1 1
}

# own_counter: igb's NICs have no errors; the file that the kernel shows of them is one of ours.
own_counter() { count_errors 0 && mount --bind /tmp/rx_crc_errors /sys/class/net/pf0/statistics/rx_crc_errors; }
count_errors() { printf '%010d\n' "$1" 1<>/tmp/rx_crc_errors; }

# ---- what is said ------------------------------------------------------------------------
reaches_all() { "$@" railctl reachability -o json | jq -e '(.rails | length) == 2 and all(.rails[]; .state == "reachable" and (.peers | length) == 1
    and all(.peers[]; .state == null)) and all(.pods[]; .state == "reachable")'; }
# out_of_use: of kubelet's view.
out_of_use() {
    local rail all unhealthy out=()
    for rail in rail0 rail1; do
        read -r all unhealthy < <(seen "$rail" | jq -r '"\(length) \([.[] | select(.health != "Healthy")] | length)"') && [ "$all" != 0 ] || { echo "$rail: no devices"; return; }
        if [ "$unhealthy" = "$all" ]; then out+=("$rail"); elif [ "$unhealthy" != 0 ]; then out+=("$unhealthy of $rail"); fi
    done
    if [ ${#out[@]} = 0 ]; then echo nothing; else (IFS=, && echo "${out[*]}" | sed 's/,/ and /g'); fi
}
out_is() { local out; out=$(out_of_use) && [ "$out" = "$1" ] || { echo "out of use: $out"; return 1; }; }
is_well() {
    reaches_all env && reaches_all at_node1 && railctl lldp -o json | jq -e 'all(.rails[]; .cabling == "right")' && out_is nothing
}
# says COMMAND WORDS: railctl does; at node1; or of the pod, while the node is well.
says() {
    case $1 in
        *' of the pod')
            railctl reachability -o json | jq -r 'select(all(.rails[]; .state == "reachable")) | .pods[] | select(.pod == "p" and .state == "dead") | .because' ;;
        *' at node1') at_node1 railctl "${1%% *}" ;;
        *) railctl "$1" ;;
    esac 2>&1 | grep -F -- "$2"
}
everything() {
    local command
    for command in health reachability lldp; do railctl "$command"; done
    at_node1 railctl reachability
    out_of_use
}
# probes: how many were sent, by the metrics: what railctl reads is written down on a change, and once a minute.
probes() {
    local fd
    exec {fd}<>/dev/tcp/127.0.0.1/9917 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&"$fd" || return
    awk '/^railhead_rail_probes_total/ { sent += $NF } END { print sent + 0 }' <&"$fd"
    exec {fd}>&-
}
# rounds_pass N: probes go on for so many rounds more, of about ten packets.
more_probes_than() { [ "$(probes)" -gt "$1" ]; }
rounds_pass() { local before; before=$(probes) && within "$LIMIT" more_probes_than $((before + 10 * $1)); }

# fault WHAT BEGIN END OUT BACK [COMMAND WORDS]...: without commands nothing is said at all.
rows=()
times=()
fault() {
    local what=$1 begin=$2 end=$3 out=$4 back=$5 said='' i found
    shift 5
    local began=${EPOCHREALTIME/./}
    check "$what" "$begin"
    for ((i = 1; i < $#; i += 2)); do
        check "... railctl ${!i}: ${*:i+1:1}" within "$LIMIT" says "${!i}" "${*:i+1:1}"
        said+="${said:+; }\`railctl ${!i%% *}\`${!i#"${!i%% *}"}: ${*:i+1:1}"
    done
    if [ $# = 0 ]; then
        check '... nobody says anything' rounds_pass 8
        check '... at either node' within "$LIMIT" is_well
        said=nobody
    fi
    check "... out of use: $out" within "$LIMIT" out_is "$out"
    found=$(((${EPOCHREALTIME/./} - began) / 100000))
    # What is no reason to take anything out of use is none at the next looks either.
    if [ "$out" = nothing ] && [ $# != 0 ]; then check '... nor later' rounds_pass 4 && check '... is anything' out_is nothing; fi
    [ "$failures" = 0 ] || everything
    began=${EPOCHREALTIME/./}
    check "... ends" "$end"
    check "... all is well again" within "$LIMIT" is_well
    [ "$failures" = 0 ] || everything
    rows+=("| $what | $said | $out | $back |")
    times+=("$((found / 10)).$((found % 10)) s, well again $(((${EPOCHREALTIME/./} - began) / 1000000)) s after its end")
}

# ---- the faults --------------------------------------------------------------------------
carrier_is() { [ "$(cat "/sys/class/net/pf$1/carrier")" = "$2" ]; }
port0() { bridge -n leaf0 vlan "$@"; }
of_another_rail() { port0 del dev swp1 vid 100 && port0 add dev swp1 vid 200; }
of_its_own() { port0 del dev swp1 vid 200; port0 add dev swp1 vid 100; }
untagged() { port0 add dev swp1 vid 100 pvid untagged; }
tagged() { port0 add dev swp1 vid 100; }
# The cables of node0: each leaf's port 1 goes to the other leaf, which has its own VLAN at it.
move_cables() {
    ip -n leaf0 link set swp1 netns leaf1 name from0 && ip -n leaf1 link set swp1 netns leaf0 name swp1 &&
        ip -n leaf1 link set from0 name swp1 && plug_in leaf0 swp1 100 && plug_in leaf1 swp1 200
}
change_places() {
    local pf
    for pf in 0 1; do cable "w$pf" out && within 60 carrier_is "$pf" 0 || return; done
    move_cables || return
    for pf in 0 1; do cable "w$pf" in && within 60 carrier_is "$pf" 1 || return; done
}
drop_of_node1() {
    tc -n leaf0 qdisc add dev swp1 clsact &&
        tc -n leaf0 filter add dev swp1 egress protocol 802.1Q flower vlan_ethtype ipv4 src_ip 10.100.0.2 dst_ip 10.100.0.1 action drop
}
drop_nothing() { tc -n leaf0 qdisc del dev swp1 clsact; }
narrow() { ip -n leaf0 link set swp2 mtu 1300; }
wide() { ip -n leaf0 link set swp2 mtu 1500; }
drop_class() {
    local way
    tc -n leaf0 qdisc add dev swp2 clsact || return
    for way in ingress egress; do
        tc -n leaf0 filter add dev swp2 "$way" protocol 802.1Q flower vlan_prio 3 vlan_ethtype ipv4 ip_tos 104/0xfc action drop || return
    done
}
drop_no_class() { tc -n leaf0 qdisc del dev swp2 clsact; }
stale_mac() { bridge -n leaf0 fdb replace "$pod_mac" dev swp2 master static sticky vlan 100; }
fresh_mac() { bridge -n leaf0 fdb del "$pod_mac" dev swp2 master vlan 100; }
# unknown_host ADDRESS: a host at leaf0 that has it.
unknown_host() {
    ip netns add unknown_host && ip -n leaf0 link add unknown_host type veth peer name eth0 netns unknown_host && plug_in leaf0 unknown_host 100 &&
        bridge -n leaf0 vlan add dev unknown_host vid 100 pvid untagged && ip -n unknown_host address add "$1/24" dev eth0 &&
        ip -n unknown_host link set eth0 up
}
has_address() { [ "$(ip -n p -j -4 address show net1 | jq -r '.[0].addr_info[0].local')" = "$1" ]; }
quarantined() { railctl ipam list | grep -E "^$1 +.* quarantined "; }
unknown_host_goes() { ip -n leaf0 link del unknown_host && ip netns del unknown_host; }
restart_beside_unknown_host() { daemon_end 0 && unknown_host 10.100.0.1 && daemon_start 0; }
slow() { tc -n leaf0 qdisc add dev swp1 root tbf rate 1mbit burst 10k latency 400ms; }
fast() { tc -n leaf0 qdisc del dev swp1 root; }
error_storm() {
    while errors=$((errors + 1000)) && count_errors "$errors"; do pause 0.5; done &
    stormer=$!
}
errors=0
storm_over() { kill "$stormer" && { wait "$stormer" || true; } 2>/dev/null; }
quiet() { lldpd_kill 0; }
talk() { lldpd_start 0; }
cut() { cable w0 out; }
repair() { cable w0 in; }

check 'two nodes, two leaves' start
[ "$failures" = 0 ] || { everything; tail -n 30 "$OUT"/*.log; finish; }
check '... all reach all, and know their switches' within 180 is_well
[ "$failures" = 0 ] || { everything; tail -n 30 "$OUT"/*.log; finish; }
check 'the switches are lldpd'\''s' test "$(railctl lldp -o json | jq -c '[.rails[] | [.switch, .port]]')" = '[["leaf0","swp1"],["leaf1","swp1"]]'

# The pod has another address than it would have got: that is the first row.
check 'another host has the address that a pod is to get' unknown_host 10.100.0.10
check '... a pod gets a VF of rail0' allocate rail0 1
check '... and is made' pod p
check '... by ADD, with the next address' cni add p "${devices[0]}"
check '... which it has' has_address 10.100.0.11
check '... railctl ipam list: quarantined' quarantined 10.100.0.10
check '... out of use: nothing else' out_is nothing
check '... ends' unknown_host_goes
check '... all is well, also from inside the pod' within "$LIMIT" is_well
[ "$failures" = 0 ] || { everything; finish; }
rows+=('| another host has the address that a pod is to get | `railctl ipam list`: quarantined; ADD gives the pod the next | this address | ten minutes |')
times+=('by ADD itself')
pod_mac=$(ip -n p -j link show net1 | jq -r '.[0].address')

fault 'the port of rail0 is in the VLAN of rail1' of_another_rail of_its_own nothing '' \
    reachability 'in VLAN 200 the gateway of rail1 answers'
fault 'the port of rail0 is untagged' untagged tagged nothing '' \
    reachability 'its gateway answers without a VLAN'
fault 'the cables of rail0 and rail1 have changed places' change_places change_places nothing '' \
    lldp 'wrong: swapped with rail1' lldp 'wrong: swapped with rail0' reachability 'in VLAN 200 the gateway of rail1 answers' reachability 'in VLAN 100 the gateway of rail0 answers'
fault 'what node1 sends to node0 is lost' drop_of_node1 drop_nothing nothing '' reachability 'silent: node1' 'reachability at node1' 'oneWay: node0'
fault 'MTU black hole: no more than 1,300 bytes to node1' narrow wide nothing '' reachability 'mtu: node1'
fault 'the leaf has no queue for RoCE at the port of node1' drop_class drop_no_class nothing '' reachability 'silent: node1' 'reachability at node1' 'silent: node0'
fault 'the leaf sends the frames for a pod to another port' stale_mac fresh_mac nothing '' 'reachability of the pod' 'gateway 10.100.0.254 does not answer'
fault 'another host has the probe address when railheadd starts' restart_beside_unknown_host unknown_host_goes nothing '' \
    reachability 'the probe address 10.100.0.1 is in use by'
fault 'the cable of rail0 is cut' cut repair rail0 carrier health 'has no carrier'
fault 'the PF of rail0 counts frames with errors (injected)' error_storm storm_over rail0 'a quiet window' health rx_crc_errors
fault 'the leaf'\''s lldpd is killed' quiet talk nothing '' lldp unknown
fault 'the leaf sends no more than 1 Mbit/s to rail0' slow fast nothing ''

check 'the pod ends' cni del p "${devices[0]}"
check 'railheadd ends on SIGTERM' daemon_end 0

# ---- the table -----------------------------------------------------------------------------
documented() { sed -n "/^$HEADING\$/,/^## /p" "$SRC/docs/operate/node-status.md" | sed -n '/^|---/,/^$/p' | grep '^| '; }
as_documented() { diff <(documented) <(printf '%s\n' "${rows[@]}"); }
check 'docs/operate/node-status.md has this table' as_documented
echo '--- table'
printf '%s\n' "${rows[@]}"
echo '--- end'
for i in "${!rows[@]}"; do
    what=${rows[i]#| }
    echo "${what%% | *}: ${times[i]}"
done
finish
