# shellcheck shell=bash disable=SC2154,SC2153,SC2015 # sourced by node.sh, whose variables it uses
# checks.sh - what the demo checks on a node; each function succeeds or says what is wrong.

wrong() { echo "$*"; return 1; }

# ---- Allocate and PreStartContainer ---------------------------------------------------
one_vf_per_rail() {
    local i pf
    [ ${#devices[@]} = 2 ] || wrong "not two devices: ${devices[*]}" || return
    for i in 0 1; do
        pf=$(ls "/sys/bus/pci/devices/${devices[i]}/physfn/net") || return
        [ "$pf" = "pf$i" ] || wrong "${devices[i]} is a VF of $pf, not of pf$i" || return
        [ "${cdi_devices[i]:-}" = "railhead.io/nic=${devices[i]}" ] || wrong "CDI devices: ${cdi_devices[*]}" || return
    done
    jq -e '.response.envs | to_entries[] | select(.key | startswith("PCIDEVICE_RAILHEAD_IO_ROCE"))' /tmp/allocate
}
prestart() { kubelet-standin prestart --dir "$KUBELET" "$RESOURCE" "${devices[@]}"; }
prestart_refused() { ! prestart; }

# ---- the sandbox ---------------------------------------------------------------------------
rail_addresses() {
    local i file=/tmp/addresses first last
    ip -j -4 -n "$POD" address show >"$file" || return
    for i in 0 1; do
        address[i]=$(jq -r --arg n "net$((i + 1))" --argjson length "${length_of_rail[i]}" \
            '.[] | select(.ifname == $n and (.flags | index("LOWER_UP"))) | .addr_info[] | select(.family == "inet" and .prefixlen == $length).local' "$file")
        first=${first_of_rail[i]}
        [ "${address[i]%.*}" = "${first%.*}" ] || wrong "net$((i + 1)) has '${address[i]}', not one like $first/${length_of_rail[i]}, or no carrier" || return
        last=$((${address[i]##*.} - ${first##*.}))
        [ $last -ge 0 ] && [ $last -lt "${count_of_rail[i]}" ] || wrong "net$((i + 1)) has ${address[i]}, not in this node's range" || return
    done
}
# By source address as TCP does, and by interface as RDMA's address resolution does.
rail_routes() { # RAIL
    local i=$1 got
    for got in "from ${address[i]}" "oif net$((i + 1))"; do
        # shellcheck disable=SC2086 # two words
        got=$(ip -j -n "$POD" route get "${far_of_rail[i]}" $got) || return
        jq -e --arg d "net$((i + 1))" --arg g "${gateway_of_rail[i]}" \
            '.[0].dev == $d and .[0].gateway == $g' <<<"$got" || wrong "rail$i: $got" || return
    done
}
cluster_route() {
    local got
    got=$(ip -j -n "$POD" route get 192.0.2.1) && jq -e '.[0].dev == "eth0"' <<<"$got" || wrong "other traffic: $got"
}
check_pod() { cni check 20-railhead.conf net1 "${devices[0]}" && cni check 20-railhead.conf net2 "${devices[1]}"; }

# ---- the NCCL configuration -------------------------------------------------------------------
# Sets gid_index and hca_of_rail from the container's /etc/nccl.conf.
read_nccl_conf() {
    local line hca hcas=() i device
    gid_index='' socket=''
    while IFS= read -r line; do
        case $line in
            NCCL_IB_HCA==*) IFS=, read -ra hcas <<<"${line#NCCL_IB_HCA==}" ;;
            NCCL_IB_GID_INDEX=*) gid_index=${line#*=} ;;
            NCCL_SOCKET_IFNAME=*) socket=${line#*=} ;;
        esac
    done < <(container_exec cat /etc/nccl.conf)
    [ ${#hcas[@]} = 2 ] && [ -n "$gid_index" ] || wrong "no two HCAs and a GID index in nccl.conf" || return
    # One line per HCA: name, netdev, GID and type of that index, and its device node.
    # shellcheck disable=SC2016 # expanded in the container
    container_exec bash -c '
        index=$1; shift
        for hca; do
            port=/sys/class/infiniband/$hca/ports/1
            for uverbs in /sys/class/infiniband_verbs/*/ibdev; do
                read -r owner <"$uverbs"
                [ "$owner" != "$hca" ] || node=/dev/infiniband/$(basename "${uverbs%/ibdev}")
            done
            [ -c "$node" ] || node=none
            read -r netdev <"/sys/class/infiniband/$hca/parent"
            echo "$hca $netdev $(cat "$port/gids/$index") $(cat "$port/gid_attrs/ndevs/$index") $node $(cat "$port/gid_attrs/types/$index")"
        done' _ "$gid_index" "${hcas[@]}" >/tmp/hcas 2>&1
    while read -r hca device _; do
        for i in 0 1; do [ "$device" != "net$((i + 1))" ] || hca_of_rail[i]=$hca; done
    done </tmp/hcas
    [ -n "${hca_of_rail[0]:-}" ] && [ -n "${hca_of_rail[1]:-}" ] || wrong "$(cat /tmp/hcas)"
}
nccl_config_is_right() {
    local i hca device gid ndev node type octets want
    [ "$socket" = "=eth0" ] || wrong "NCCL_SOCKET_IFNAME is '$socket', not '=eth0'" || return
    while read -r hca device gid ndev node type; do
        for i in 0 1; do
            [ "$hca" = "${hca_of_rail[i]}" ] || continue
            IFS=. read -ra octets <<<"${address[i]}"
            printf -v want '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "${octets[@]}"
            [ "$gid $ndev $type" = "$want net$((i + 1)) RoCE v2" ] ||
                wrong "$hca: GID $gid_index is '$gid $ndev $type', the pod's address is $want on net$((i + 1))" || return
            [ "$node" != none ] || wrong "$hca: no device node in the container" || return
        done
    done </tmp/hcas
    local nodes
    nodes=$(container_exec ls /dev/infiniband) && [ "$(wc -w <<<"$nodes")" = 3 ] ||
        wrong "the container's device nodes are not two uverbs and rdma_cm: $nodes"
}
# The planted fault: an index that no address has, on both nodes.
plant_gid() {
    local file
    for file in /run/railhead/nccl/*/nccl.conf; do
        sed 's/^NCCL_IB_GID_INDEX=.*/NCCL_IB_GID_INDEX=9/' "$file" >/tmp/faulty && cat /tmp/faulty >"$file" || return
    done
}

# ---- the wire -----------------------------------------------------------------------------------
# RAIL ADDRESS: from the pod's address on the rail; the answer is in /tmp/ping.
ping_from() { within 60 ping_once "$@" || wrong "no answer from $2"; }
# One hop: a router took the time to live from 64 to 63.
ping_routed() { ping_from "$@" && grep -q 'ttl=63' /tmp/ping || wrong "not through the router: $(cat /tmp/ping)"; }
ping_once() { ip netns exec "$POD" ping -c 1 -W 1 -I "${address[$1]}" "$2" >/tmp/ping; }
mac_of() { ip netns exec "$POD" cat "/sys/class/net/net$(($1 + 1))/address"; }
# Any frame of the VF, after having made it send one. None in another VLAN, none untagged.
tagged() {
    local i=$1 mac
    mac=$(mac_of "$i") || return
    ip netns exec "$POD" ping -c 1 -W 1 -I "${address[i]}" "${gateway_of_rail[i]}"
    within 60 on_wire "wire-$i.pcap" ether src "$mac" || wrong "no frame of $mac on the wire" || return
    on_wire "wire-$i.pcap" ether src "$mac" and not vlan && { wrong "an untagged frame of $mac"; return; }
    on_wire "wire-$i.pcap" vlan "${vlan_of_rail[i]}" and ether src "$mac" ||
        wrong "its frames are not in VLAN ${vlan_of_rail[i]}: $(on_wire "wire-$i.pcap" ether src "$mac")"
}
# Each frame to the other pod has the leaf's MAC: the networks have nothing but the router in common.
next_hop() {
    local i=$1 mac router to
    mac=$(mac_of "$i") && router=$(ip -j -n "$POD" neigh show dev "net$((i + 1))" | jq -re --arg ip "${gateway_of_rail[i]}" '.[] | select(.dst == $ip).lladdr') || return
    to=(ether src "$mac" and ip dst "${peer[i]}")
    within 60 on_wire "wire-$i.pcap" vlan "${vlan_of_rail[i]}" and "${to[@]}" || wrong "no frame to ${peer[i]} on the wire" || return
    on_wire "wire-$i.pcap" vlan and "${to[@]}" and not ether dst "$router" && { wrong "a frame to another one than the router, $router"; return; }
    on_wire "wire-$i.pcap" vlan and ether src "$mac" and arp host "${peer[i]}" && { wrong "the pod asked for the MAC of ${peer[i]}"; return; }
    return 0
}
# An ARP packet whose sender's and target's address are both the pod's own.
announced() {
    local i=$1 mac
    mac=$(mac_of "$i") || return
    on_wire "wire-$i.pcap" vlan "${vlan_of_rail[i]}" and arp and ether src "$mac" \
        and 'arp[14:4] = arp[24:4]' and arp host "${address[i]}" || wrong "no gratuitous ARP of ${address[i]} from $mac"
}

# ---- reachability -------------------------------------------------------------------------------
reaches() { # RAIL
    railctl reachability -o json >/tmp/reachability.json
    jq -e --arg rail "rail$1" --argjson peers "${peers_of_rail[$1]}" '(.rails[] | select(.rail == $rail) | .state == "reachable" and .gateway.answers
            and ([.peers[] | .state // "reachable"] == [range($peers) | "reachable"]))
        and ([.pods[] | select(.rail == $rail) | .state] == ["reachable"])' /tmp/reachability.json
}

# ---- RDMA -----------------------------------------------------------------------------------------
write_bw() { # RAIL: node 1 serves, node 0 writes
    local i=$1 port=$((18515 + $1)) status=0
    local command=(timeout 90 ib_write_bw -d "${hca_of_rail[i]}" -x "$gid_index" -p "$port" "${gentle[@]}")
    : >/tmp/bw.log
    if [ "$NODE" = 1 ]; then
        container_exec "${command[@]}" >/tmp/bw.log 2>&1 &
        local server=$!
        if within 60 server_up "$server" "$port"; then post "$attempt" up; else post "$attempt" no; fi
        wait "$server" || status=$?
    else
        [ "$(await "$attempt")" = up ] || wrong "the other node does not serve" || return
        container_exec "${command[@]}" "${peer[i]}" >/tmp/bw.log 2>&1 || status=$?
    fi
    cat /tmp/bw.log
    return "$status"
}
server_up() { ! kill -0 "$1" 2>/dev/null || listens "$POD" "$2"; }

# ---- the end ------------------------------------------------------------------------------------------
delete_pod() {
    local round i
    for round in 1 2; do
        for i in 1 0; do
            cni del 20-railhead.conf "net$((i + 1))" "${devices[i]}" || wrong "DEL $round of net$((i + 1))" || return
        done
    done
    cni del 10-cluster.conflist eth0
}
# host_state: everything of the node that a pod may have changed, by value: the links with
# their VFs' settings, but for indices, counters and the cluster's own bridge; RDMA devices;
# what is below /run/railhead and /run/cdi, but for locks, the log of timings, and what railheadd
# has of its own.
host_state() {
    ip -d -j link show | jq -S '
        def clean: walk(if type == "object" then del(.ifindex, .link_index, .stats, .stats64) else . end);
        map(select(.ifname != "cni0") | clean) | sort_by(.ifname) | .[]'
    echo "RDMA devices:"
    ls /sys/class/infiniband
    echo "files:"
    find /run/railhead /run/cdi /var/lib/cni/networks/cluster -mindepth 1 ! -type d ! -path '*/locks/*' ! -path '*/tenants/*' \
        ! -name lock ! -name 'attach.log*' ! -name bind.sock ! -name health.json ! -name lldp.json ! -name reachability.json ! -name pfs.json ! -name 'observations*.jsonl' ! -name 'last_reserved_ip*' 2>/dev/null | sort
}
restored() {
    host_state >/tmp/after
    diff -u /tmp/before /tmp/after
}
# So many ADDs as the node has addresses must succeed, and not one more.
none_leaked() {
    local rail n address
    for rail in 0 1; do
        for ((n = 1; n <= count_of_rail[rail]; n++)); do
            address=$(probe add "$rail" "$n" | jq -re '.ips[0].address') || wrong "rail$rail: only $((n - 1)) of ${count_of_rail[rail]} addresses are free" || return
            echo "rail$rail: $address"
        done
        ! probe add "$rail" more || wrong "rail$rail: more addresses than ${count_of_rail[rail]}" || return
        for ((n = 1; n <= count_of_rail[rail]; n++)); do probe del "$rail" "$n" || return; done
    done
}
probe() { # add|del RAIL N: the IPAM plugin alone
    cnidriver "$1" -conf "/etc/cni/net.d/ipam-rail$2.conf" -id "probe-$3" -netns /proc/self/ns/net -ifname "net$2"
}
