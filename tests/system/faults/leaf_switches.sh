# shellcheck shell=bash
# leaf_switches.sh - two leaf switches in the guest's network namespaces leaf0 and leaf1, for scripts that have
# sourced tests/support/vm/lib.sh in a guest of topology leaves: a bridge that knows VLANs, a gateway in the rail's VLAN,
# Debian's lldpd. Port swp1 is node0's, swp2 node1's; spine joins them and carries both rails' VLANs.
readonly SWITCH=/mnt/switch

# switches_ready: modules and lldpd, which wants a user of its own.
switches_ready() {
    modprobe -a bridge veth sch_ingress sch_tbf cls_flower act_gact || return
    cp -a "$SWITCH"/lldpd "$SWITCH"/lldpcli /usr/sbin/ && cp -a "$SWITCH"/lib/. /usr/lib/x86_64-linux-gnu/ || return
    ldconfig 2>/dev/null
    echo '_lldpd:x:100:100::/run/lldpd:/bin/false' >>/etc/passwd
    echo '_lldpd:x:100:' >>/etc/group
    mkdir -p /run/lldpd
}
# leaf_switch N VLAN GATEWAY/LENGTH: rail N's.
leaf_switch() {
    local leaf=leaf$1
    ip netns add "$leaf" && ip link set "leaf$1" netns "$leaf" name swp1 && ip link set "leaf$(($1 + 2))" netns "$leaf" name swp2 || return
    bridge_of "$leaf" && gateway_of "$leaf" "$2" "$3" && plug_in "$leaf" swp1 "$2" && plug_in "$leaf" swp2 "$2"
}
bridge_of() { # LEAF
    # The bridge's own MTU is stated, so that it does not follow that of a port.
    ip -n "$1" -batch - <<END
link set lo up
link add name switch type bridge vlan_filtering 1 vlan_default_pvid 0 mcast_snooping 0 stp_state 0
link set dev switch mtu 1500 up
END
}
gateway_of() { # LEAF VLAN GATEWAY/LENGTH
    ip -n "$1" -batch - <<END || return
link add link switch name gateway type vlan id $2
address add $3 dev gateway
link set gateway up
END
    bridge -n "$1" vlan add dev switch vid "$2" self
}
# plug_in LEAF PORT VLAN...: a port of the switch, tagged in these VLANs.
plug_in() {
    local leaf=$1 port=$2 vlan
    ip -n "$leaf" link set dev "$port" master switch up || return
    for vlan in "${@:3}"; do bridge -n "$leaf" vlan add dev "$port" vid "$vlan" || return; done
}
# spine VLAN...: the leaves' wire to each other.
spine() {
    ip -n leaf0 link add spine type veth peer name spine netns leaf1 || return
    plug_in leaf0 spine "$@" && plug_in leaf1 spine "$@"
}

# ---- who they say they are ---------------------------------------------------------------
lldpd_pids=()                            # by number
# lldpd_start N: each second, to be believed for 15.
lldpd_start() {
    cat >"/tmp/leaf$1.conf" <<END
configure system hostname leaf$1
configure system chassisid leaf$1
configure lldp portidsubtype ifname
configure lldp tx-interval 1
configure lldp tx-hold 15
END
    ip netns exec "leaf$1" lldpd -d -u "/run/lldpd-leaf$1.sock" -I 'swp*' -O "/tmp/leaf$1.conf" >"$OUT/lldpd-leaf$1.log" 2>&1 &
    lldpd_pids[$1]=$!
}
# lldpd_kill N: it says no goodbye. It is two processes: one with rights, its child without.
lldpd_kill() {
    local pid=${lldpd_pids[$1]} children
    read -ra children <"/proc/$pid/task/$pid/children"
    kill -KILL "$pid" "${children[@]}" && { wait "$pid" || true; } 2>/dev/null
}
