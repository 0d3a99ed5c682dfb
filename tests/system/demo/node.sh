#!/bin/bash
# node.sh - the demo's part on each node; demo.sh runs it in both guests of a pair.
# usage: node.sh FAULT FABRIC     FAULT: none, vlan, gid, arp or segment; FABRIC: flat or routed
# Railhead is installed from its package, and systemd runs railheadd.
# Everything it shows is printed; every check goes to the table (report.sh).
set -u
fault=$1 fabric=$2
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/system/demo/config.sh
. "$SRC/tests/system/demo/config.sh"
# shellcheck source=tests/system/demo/container.sh
. "$SRC/tests/system/demo/container.sh"
# shellcheck source=tests/system/demo/checks.sh
. "$SRC/tests/system/demo/checks.sh"
# shellcheck source=tests/system/demo/report.sh
. "$SRC/tests/system/demo/report.sh"
# shellcheck source=tests/system/package/installed.sh
. "$SRC/tests/system/package/installed.sh"
readonly KUBELET=/var/lib/kubelet/device-plugins
package_tools kubelet-standin cnidriver

cni() { # add|check|del CONF IFNAME [DEVICE]
    local capabilities=()
    [ $# -lt 4 ] || capabilities=(-cap "{\"deviceID\":\"$4\"}")
    cnidriver "$1" -conf "/etc/cni/net.d/$2" -id "$POD" -netns "/run/netns/$POD" -ifname "$3" "${capabilities[@]}"
}

# ---- the node -----------------------------------------------------------------------
start_node() {
    step "node$NODE: the package, PFs, VFs, configuration"
    need "dpkg installs the package" package_install >/tmp/dpkg 2>&1
    grep railhead /tmp/dpkg | show
    need "systemd knows its unit" package_log "$OUT/railheadd.log"
    need "modules for soft RoCE" modprobe -a rdma_rxe rdma_ucm
    local pf vf
    for pf in 0 1; do
        need "pf$pf: two VFs" make_vfs "pf$pf" 2
        for vf in 0 1; do need "pf$pf: MAC of VF $vf" give_vf_mac "pf$pf" "$vf" "02:00:00:0$NODE:0$pf:0$vf"; done
    done
    if [ "$NODE" = 0 ]; then need "leaf router" leaf_router "${leaf_of_rails[@]}"; fi
    write_config
    host_state >/tmp/before
    mkdir -p "$KUBELET"
    kubelet-standin serve --dir "$KUBELET" >"$OUT/kubelet.log" 2>&1 &
    kubelet=$!
    need "kubelet's socket" within 60 test -e "$KUBELET/kubelet.sock"
    need "systemd starts railheadd" systemctl start "$UNIT"
    systemctl status --no-pager --lines 0 "$UNIT" | head -n 4 | show
    need "railheadd offers four healthy VFs" kubelet-standin devices --dir "$KUBELET" "$RESOURCE" --wait 4 --timeout 120 >/tmp/devices
    echo "      $RESOURCE: $(jq -c '[.[] | "\(.id) NUMA \(.numa) \(.health)"]' /tmp/devices)"
}

# ---- the pod --------------------------------------------------------------------------
allocate() {
    step "kubelet admits the pod: two $RESOURCE"
    kubelet-standin allocate --dir "$KUBELET" "$RESOURCE" 2 >/tmp/allocate 2>&1 || { cat /tmp/allocate; return 1; }
    jq . /tmp/allocate | show
    # In PCI order, as the pod's interfaces: net1 on rail 0, net2 on rail 1.
    mapfile -t devices < <(jq -r '.devices | sort | .[]' /tmp/allocate)
    mapfile -t cdi_devices < <(jq -r '.response.cdi_devices | sort | .[]' /tmp/allocate)
}

start_pod() {
    step "the sandbox: eth0 by the cluster's network, then one CNI ADD per VF"
    need "the pod's namespace" ip netns add "$POD"
    ip -n "$POD" link set lo up
    need "CNI ADD of eth0" cni add 10-cluster.conflist eth0 >/tmp/eth0
    local i
    for i in 0 1; do
        held "add$i" "CNI ADD gives net$((i + 1)) by VF ${devices[i]}" add_vf "$i" || exit 1
        jq -c '{interfaces, ips, routes}' "/tmp/add$i" | show
    done
}
add_vf() { cni add 20-railhead.conf "net$(($1 + 1))" "${devices[$1]}" >"/tmp/add$1"; }

show_pod() {
    step "the pod: interfaces, addresses, routes, rules"
    {
        ip -br -n "$POD" link
        ip -br -4 -n "$POD" address
        ip -n "$POD" route show table all | grep -v -E 'table local|^(fe80|ff00|local|anycast|multicast)'
        ip -n "$POD" rule
    } | show
    step "the NCCL configuration: CDI specs on the node, nccl.conf as the container sees it"
    local spec
    for spec in /run/cdi/*.json; do [ ! -e "$spec" ] || jq -c . "$spec" | show; done
    railctl nccl show "$POD" | show
}

main() {
    start_node
    need "Allocate" allocate
    held allocate "Allocate: one VF per rail, named by CDI" one_vf_per_rail
    held refused "PreStartContainer refuses before the VFs are attached" prestart_refused
    start_pod
    show_pod
    held addresses "each VF has an address of its rail and this node's range" rail_addresses
    local i
    for i in 0 1; do
        if held "routes$i" "rail$i: its traffic leaves by its own NIC, to its gateway" rail_routes "$i"; then routed[i]=1; fi
    done
    held cluster "other traffic leaves by eth0" cluster_route
    held prestart "PreStartContainer accepts" prestart
    need "the container starts with what CDI says" container_start "$POD" "${cdi_devices[@]}"
    container_exec cat /etc/nccl.conf | show
    need "nccl.conf can be read" read_nccl_conf
    held nccl "nccl.conf names the pod's HCAs and the GID of its address" nccl_config_is_right
    if held verify "railctl nccl verify: the pod's NICs match" railctl nccl verify "$POD"; then show </tmp/held.log; fi
    reach attached
    network
    reachability
    held check "CNI CHECK finds all as ADD left it" check_pod
    rdma
    reach measured
    end_pod
    step "node$NODE: done"
}

# ---- the fabric -------------------------------------------------------------------------
network() {
    step "the wire: VLAN, announcement, gateway, the other node"
    local i ok
    usable=()
    for i in 0 1; do
        ok=1
        held "vlan$i" "rail$i: frames leave in VLAN ${vlan_of_rail[i]}" tagged "$i" || ok=''
        if [ -n "$ok" ]; then
            if held "arp$i" "rail$i: the VF announced its address, in its VLAN" announced "$i"; then show </tmp/held.log; fi
            if held "gateway$i" "rail$i: the gateway answers" ping_from "$i" "${gateway_of_rail[i]}"; then answer; else ok=''; fi
        else
            skipped "arp$i" "rail$i: the VF announced its address, in its VLAN"
            skipped "gateway$i" "rail$i: the gateway answers"
        fi
        [ -n "${routed[i]}" ] || ok=''
        usable[i]=$ok
    done
    exchange
    local ping=ping_from
    [ "$fabric" = flat ] || ping=ping_routed
    for i in 0 1; do
        if [ -n "${usable[i]}" ]; then
            if held "rail$i" "rail$i: the pod of the other node answers" "$ping" "$i" "${peer[i]}"; then answer; fi
        else skipped "rail$i" "rail$i: the pod of the other node answers"; fi
        [ "$fabric" != flat ] || continue
        if [ -n "${usable[i]}" ]; then
            if held "hop$i" "rail$i: frames to that pod go to the leaf, none to the pod itself" next_hop "$i"; then show </tmp/held.log; fi
        else skipped "hop$i" "rail$i: frames to that pod go to the leaf, none to the pod itself"; fi
    done
    if [ -n "${usable[0]}" ] && [ -n "${usable[1]}" ]; then
        if held across "across rails: rail0 reaches the other pod's rail1 through the leaf" ping_routed 0 "${peer[1]}"; then answer; fi
    else skipped across "across rails: rail0 reaches the other pod's rail1 through the leaf"; fi
}

# reachability: what railheadd reaches by probes, from the node and from inside the pod.
reachability() {
    step "railctl reachability: what the rails reach"
    local i
    for i in 0 1; do
        if [ -n "${usable[i]}" ]; then
            held "reach$i" "rail$i: the gateway, the other node's probe endpoint, and the pod's way to both" within 120 reaches "$i"
        else skipped "reach$i" "rail$i: the gateway, the other node's probe endpoint, and the pod's way to both"; fi
    done
    railctl reachability --all 2>&1 | show
}

answer() { grep 'bytes from' /tmp/ping | show; }

# exchange: what the other node needs to know of this one; a rail is used by both or none.
exchange() {
    local other
    post "pod.$NODE" "${address[0]} ${address[1]} ${usable[0]:-0} ${usable[1]:-0}"
    other=$(await "pod.$((1 - NODE))") || need "the other node's addresses" false
    read -r -a other <<<"$other"
    peer=("${other[0]}" "${other[1]}")
    local i
    for i in 0 1; do [ "${other[i + 2]}" != 0 ] || usable[i]=''; done
}

rdma() {
    step "RDMA: ib_write_bw between the two pods, HCA and GID index from /etc/nccl.conf"
    [ "$fault" != gid ] || need "planting the fault" plant_gid
    need "nccl.conf can be read" read_nccl_conf
    local i
    for i in 0 1; do
        if [ -n "${usable[i]}" ]; then
            held "rdma$i" "rail$i: RDMA from pod to pod by ${hca_of_rail[i]}, GID index $gid_index" data_moves "rdma$i" write_bw "$i"
            [ "$NODE" = 1 ] || grep -h -A1 '#bytes' /tmp/bw.log | show
        else skipped "rdma$i" "rail$i: RDMA from pod to pod"; fi
    done
}

# ---- the end ------------------------------------------------------------------------------
end_pod() {
    step "the pod ends: DEL, and DEL again, as runtimes do"
    container_stop
    held del "DEL twice" delete_pod
    ip netns del "$POD"
    held restored "PFs, VFs, RDMA devices and /run/railhead are as before" restored
    held leaked "no address leaked: this node's whole range can be handed out" none_leaked
    held daemon "railheadd ends on SIGTERM" railheadd_ends
    kill "$kubelet"
    wait "$kubelet" 2>/dev/null
}
railheadd_ends() { systemctl stop "$UNIT" && [ "$(systemctl show --value -p Result -p ExecMainStatus "$UNIT" | sort | tr '\n' ' ')" = '0 success ' ]; }

: >"$OUT/results"
usable=() routed=('' '') peer=() address=() hca_of_rail=() devices=() cdi_devices=()
gid_index='' kubelet=''
main
