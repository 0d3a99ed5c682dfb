# shellcheck shell=bash
# lib.sh - for scripts that run in a guest: . "$SRC/tests/support/vm/lib.sh"
#
# Waiting, checking, meeting the other node, VFs, pulling cables, the leaf router, GIDs,
# captures.
# Emulation makes every process cost milliseconds: what is polled is done by bash
# itself where it can be, and no helper sleeps for a fixed time.  Limits are
# generous, since the machine that emulates may be busy.

# ---- waiting -----------------------------------------------------------------------
exec {pause_fd}<> <(:)                   # a pipe into which nobody writes
# pause SECONDS: sleep without a process.
pause() { read -rt "$1" -u "$pause_fd" || true; }

# within SECONDS COMMAND...: repeat the command until it succeeds, or fail. The pauses grow to a second, each at most a
# quarter of what has passed: what takes long is not asked for so often that the asking delays it.
within() {
    local end=$((SECONDS + $1)) begin=${EPOCHREALTIME/./} next
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        next=$(((${EPOCHREALTIME/./} - begin) / 4))
        if [ "$next" -ge 1000000 ]; then pause 1; elif [ "$next" -gt 100000 ]; then pause ".$(printf %06d "$next")"; else pause 0.1; fi
    done
}

# eventually COMMAND...: within a minute; and it says why not.
eventually() { within 60 "$@" || "$@"; }

# ---- checking ----------------------------------------------------------------------
failures=0
checked=0
check_log=/tmp/check.log
passed() { checked=$((checked + 1)); echo "ok    $*"; }
failed() { checked=$((checked + 1)); failures=$((failures + 1)); echo "FAIL  $*"; }

# check WHAT COMMAND...: the command has to succeed; deny: has to fail.
check() {
    local what=$1
    shift
    if "$@" >"$check_log" 2>&1; then passed "$what"; else failed "$what: $(tail -n 12 "$check_log")"; fi
}
deny() {
    local what=$1
    shift
    if "$@" >"$check_log" 2>&1; then failed "$what"; else passed "$what"; fi
}

# finish: the last line of a script; a script that checked nothing fails.
finish() {
    echo "$checked checked, $failures failed"
    [ "$failures" = 0 ] && [ "$checked" -gt 0 ]
    exit
}

# ---- meeting the other node of a pair ----------------------------------------------------
# reach NAME: wait until both nodes are here.  post NAME [TEXT...], await NAME:
# one-way; await prints the text.
reach() {
    : >"$SYNC/$1.$NODE"
    within 600 test -e "$SYNC/$1.$((1 - NODE))" || { failed "the other node did not reach '$1'"; finish; }
}
post() {
    local name=$1
    shift
    echo "$*" >"$SYNC/.$name.new" && mv "$SYNC/.$name.new" "$SYNC/$name"
}
await() { within 180 test -e "$SYNC/$1" && cat "$SYNC/$1"; }
# both NAME COMMAND...: here and on the other node at once; each hears how the other fared.
both() {
    local name=$1 status=0 other
    shift
    "$@" || status=$?
    post "$name.$NODE" "$status"
    other=$(await "$name.$((1 - NODE))") && [ "$status" = 0 ] && [ "$other" = 0 ]
}
# data_moves NAME COMMAND...: RDMA between the nodes; COMMAND is one end of it and posts by the name of $attempt. Three
# attempts, for on a busy machine the emulated NICs lose more than soft RoCE bears; what is wrong is wrong every time.
data_moves() {
    for attempt in "$1.first" "$1.second" "$1.third"; do
        both "$attempt.over" "${@:2}" && return
        echo "$attempt has failed"
    done
    return 1
}

# ---- PFs and VFs -------------------------------------------------------------------------
is_up() {
    local state
    read -r state <"/sys/class/net/$1/operstate" && [ "$state" = up ]
}
pci_of() { basename "$(readlink "/sys/class/net/$1/device")"; }
vf_pci() { basename "$(readlink "/sys/class/net/$1/device/virtfn$2")"; }
vf_netdev() { local path=("/sys/class/net/$1/device/virtfn$2/net/"*); basename "${path[0]}"; }
vf_has_netdev() { [ -e "/sys/class/net/$1/device/virtfn$2/net" ]; }

# make_vfs PF N: igbvf wants a PF that is up.
make_vfs() {
    local i
    ip link set "$1" up || return
    within 60 is_up "$1" || return
    echo "$2" >"/sys/class/net/$1/device/sriov_numvfs" || return
    for ((i = 0; i < $2; i++)); do within 60 vf_has_netdev "$1" "$i" || return; done
    within 60 is_up "$1"                 # igb closes and opens the PF for its VFs
}
# give_vf_mac PF VF MAC: as operators do. A VF without one gets a random MAC with every
# bind, which its PF shows only from the first time that the VF is up.
give_vf_mac() {
    ip link set "$1" vf "$2" mac "$3" && rebind_vf "$(vf_pci "$1" "$2")" && within 60 vf_has_netdev "$1" "$2"
}
# rebind_vf PCI: a bound igbvf does not learn a MAC that the PF gives it.
rebind_vf() {
    echo "$1" >/sys/bus/pci/drivers/igbvf/unbind
    echo "$1" >/sys/bus/pci/drivers/igbvf/bind
}

# ---- the other end of the cables -----------------------------------------------------------
# cable DEVICE in|out: what a switch whose port goes down does to a NIC: it has no carrier.
# DEVICE is what the topology plugs the NIC into: w0 for pf0, w1 for pf1.
cable() {
    local up=true answer
    [ "$2" = in ] || up=false
    answer=$(monitor set_link "{\"name\":\"$1\",\"up\":$up}") || return
    if [[ $answer != *'"return"'* ]]; then echo "the cable of $1 does not go $2: $answer"; return 1; fi
}
# monitor COMMAND ARGUMENTS: one command of QEMU's machine protocol (QMP), and its answer.
monitor() {
    local port name line='' fd
    for port in /sys/class/virtio-ports/*; do
        read -r name <"$port/name" && [ "$name" = railhead.monitor ] && break
    done 2>/dev/null
    exec {fd}<>"/dev/${port##*/}" || return
    # The first time it wants to hear of capabilities before anything else; later it takes
    # that for an error. Greetings, events and this answer do not have our id.
    echo '{"execute":"qmp_capabilities"}' >&"$fd"
    echo "{\"execute\":\"$1\",\"id\":\"asked\",\"arguments\":$2}" >&"$fd"
    while read -rt 60 line <&"$fd" && [[ $line != *'"asked"'* ]]; do :; done
    exec {fd}>&-
    echo "${line:-no answer of QEMU\'s monitor}"
}

# ---- the leaf router -----------------------------------------------------------------------
# leaf_router VLAN GATEWAY/LENGTH...: the network namespace "leaf" with the NIC leaf0
# (topology leaf), a VLAN interface and the gateway's address per rail, forwarding
# between them: what the leaf switch does for the rails.
leaf_router() {
    { [ -e /run/netns/leaf ] || ip netns add leaf; } && ip link set leaf0 netns leaf || return
    {
        echo "link set lo up"
        echo "link set leaf0 up"
        while [ $# -ge 2 ]; do
            echo "link add link leaf0 name rail$1 type vlan id $1"
            echo "address add $2 dev rail$1"
            echo "link set rail$1 up"
            shift 2
        done
    } | ip -n leaf -batch - || return
    ip netns exec leaf sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
}

# ---- RDMA ------------------------------------------------------------------------------------
# Scripts for "ip netns exec NETNS bash -c ... _ ARGS": sysfs shows the namespace's devices.
# gid_index NETNS RDMADEV A.B.C.D: index of the RoCE v2 GID of an IPv4 address.
gid_index() {
    local octets gid
    IFS=. read -ra octets <<<"$3"
    printf -v gid '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "${octets[@]}"
    # shellcheck disable=SC2016 # expanded in the namespace
    ip netns exec "$1" bash -c '
        cd "/sys/class/infiniband/$1/ports/1" || exit
        for i in {0..31}; do
            read -r gid <gids/$i && [ "$gid" = "$2" ] || continue
            read -r type <gid_attrs/types/$i && [ "$type" = "RoCE v2" ] && echo "$i" && exit
        done 2>/dev/null
        exit 1' _ "$2" "$gid"
}
# Options for ib_write_bw under emulation: little in flight, for rxe answers what comes
# late or out of order by starting again, and 1 s before a retry, for the host may be busy.
# shellcheck disable=SC2034 # for those who source this file
gentle=(-n 40 -s 4096 -t 8 -Q 1 -u 18)
# listens NETNS PORT: is a TCP server there?
listens() { ip netns exec "$1" ss -Hltn "sport = :$2" | grep -q .; }

# ---- captures ------------------------------------------------------------------------------------
# on_wire FILE FILTER...: does the capture (wire-P.pcap, leaf-P.pcap) hold such a frame?
on_wire() {
    local file=$OUT/$1 frame
    shift
    # Read once per call: tcpdump ends at the first match.
    frame=$(tcpdump -Z root -c 1 -nner "$file" "$@" 2>/dev/null) && [ -n "$frame" ] && echo "$frame"
}
