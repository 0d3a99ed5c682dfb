#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD -s cni=/usr/lib/cni tests/guest/capabilities.sh
#
# railheadd with exactly the capabilities of manifests/ does all of its work; with each of them left
# out in turn, something that has a name fails. So the set is enough, and none is in it for nothing.
# Meanwhile its system calls are counted: all are in the list of manifests/seccomp/, and what that list says is
# called in any case is called.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
mapfile -t NEEDED < <(sed -n 's/^CapabilityBoundingSet=//p' "$SRC/manifests/railheadd.service" | tr ' ' '\n')
readonly NEEDED

# ---- the node ----------------------------------------------------------------------------
node() {
    modprobe -a rdma_rxe ib_uverbs && make_vfs pf0 2 && make_vfs pf1 2 && fabric '.rails[1].softRoce = true | . + { policy: { networks: [ { devices: "any", ipam: ["static"], allow: ["conflictProbeMs"] } ] }, pools: [
        { resource: "railhead.io/rail0", rails: ["rail0"], ncclConfig: "off" },
        { resource: "railhead.io/late", rails: ["rail1"], binding: "late" } ],
        health: { intervalSeconds: 1, link: { downAfter: 1, upAfter: 1 } } }' && kubelet_start &&
        cp /mnt/cni/static /opt/cni/bin/
}
# daemon_with NUMBER CAPABILITY...: as daemon_start. What is in "watched" runs before it, in the same process.
watched=()
daemon_with() {
    local number=$1 IFS=,
    shift
    "${watched[@]}" "$BUILD/bin/with-capabilities" "$*" "$BUILD/bin/railheadd" --kubelet-dir "$KUBELET" --resync-interval 86400 \
        --reconcile-interval 1 --log-level debug >"$OUT/railheadd-$number.log" 2>&1 &
    daemons[number]=$!
}
# Sorted: what the filter takes from the list; what was called.
listed() { jq -r "$1" "$SRC/manifests/seccomp/railheadd.json" | sort -u; }
called() { awk '$2 ~ /^[0-9]+$/ && $1 != "total" { print $1 }' "$OUT/calls" | sort -u; }
# clone3 is refused, so that clone is called (see there).
all_are_listed() { ! called | grep -vxF -f <(listed '.syscalls[].names[]') | grep -vx clone3; }
all_are_called() { ! listed '.syscalls[0].names[]' | grep -vxF -f <(called); }
effective() { sed -n 's/^CapEff:\t//p' "/proc/${daemons[$1]}/status"; } # NUMBER

# ---- its work ------------------------------------------------------------------------------
network() { # PROBE-MS: one interface with two addresses
    jq -n --argjson probe "$1" '{ cniVersion: "1.0.0", name: "rails", type: "railhead", ncclConfig: "off", linkTimeoutSeconds: 120, conflictProbeMs: $probe,
        capabilities: { deviceID: true },
        ipam: { type: "static", addresses: [ { address: "10.10.0.77/24" }, { address: "fd00::77/64" } ] } }' >/etc/cni/net.d/rails.conf
}
attach() { network 0 && pod "$1" && cni add "$1" "$2"; } # POD DEVICE
detach() { cni del "$1" "$2" && ip netns del "$1"; }
plugin() { # its process
    local path name
    for path in /proc/[0-9]*; do
        read -r name <"$path/comm" 2>/dev/null && [ "$name" = railhead ] && { echo "${path#/proc/}"; return; }
    done
    return 1
}
# killed_add POD DEVICE: ADD is killed while it waits for whether another one has its address.
killed_add() {
    network 10000 && pod "$1" || return
    cni add "$1" "$2" >/dev/null 2>&1 &
    local driver=$!
    within 60 ip -n "$1" link show dev net1 && kill -KILL "$(plugin)" || return
    ! wait "$driver"
}
is_on_host() { [ -n "$(ls "/sys/bus/pci/devices/$1/net" 2>/dev/null)" ] && [ ! -s "/run/railhead/locks/$1.lock" ]; }
hears_no_switch() { within 60 logged "$1" '"msg":"LLDP monitoring failed.*'"$2"; }
reconciled() { within 60 logged "$1" '"msg":"reconciled","what":"attachment"'; }
not_reconciled() { within 60 logged "$1" '"msg":"not reconciled".*'"$2"; }
given() { # POD RESOURCE SLOT: what kubelet has written by the time of ADD
    local checkpoint=/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
    mkdir -p "${checkpoint%/*}" && jq -n '$ARGS.positional | { Data: { PodDeviceEntries: [ { PodUID: .[0], ContainerName: "main", ResourceName: .[1],
        DeviceIDs: { "-1": [ .[2] ] }, AllocResp: "" } ], RegisteredDevices: {} }, Checksum: 1 }' --args "$@" >"$checkpoint.new" && mv "$checkpoint.new" "$checkpoint"
}
bound() { # POD NUMBER: a slot becomes a device
    allocate late 1 && slot=${devices[0]} && given "$1" railhead.io/late "$slot" && network 0 && sed -i '/"ncclConfig"/d' /etc/cni/net.d/rails.conf && pod "$1" &&
        cni add "$1" "$slot" -args "IgnoreUnknown=1;K8S_POD_UID=$1" && within 60 logged "$2" '"msg":"bound"'
}

# has_metric METRIC PATTERN: the page of NICs has METRIC; PATTERN is of its labels and value.
has_metric() {
    exec 9<>/dev/tcp/127.0.0.1/9917 && printf 'GET /metrics/nics HTTP/1.0\r\n\r\n' >&9 && cat <&9 >"$OUT/nics" && exec 9>&- &&
        grep -q -- "^$1.*$2" "$OUT/nics"
}

check 'there are NICs and kubelet' node
[ "$failures" = 0 ] || finish

# ---- exactly those -----------------------------------------------------------------------------
watched=(strace -D -f -qq -c -U name,calls -S name -o "$OUT/calls")
daemon_with 0 "${NEEDED[@]}"
watched=()
check "railheadd with ${NEEDED[*]} serves" offers rail0 2
[ "$failures" = 0 ] || { cat "$OUT"/railheadd-0.log; finish; }
check '... slots, too' offers late 2
bits=$(for name in "${NEEDED[@]}"; do case $name in
    CAP_NET_ADMIN) echo 12 ;; CAP_NET_RAW) echo 13 ;; CAP_SYS_PTRACE) echo 19 ;; CAP_SYS_ADMIN) echo 21 ;; *) echo 63 ;; esac; done)
expected=0
for bit in $bits; do expected=$((expected | 1 << bit)); done
check '... and has nothing more' test "$((16#$(effective 0)))" = "$expected"
check '... allocates' allocate rail0 1
vf=${devices[0]}
check '... ADD takes the VF' attach a "$vf"
check '... what the pod sent is counted' within 60 has_metric railhead_nic_transmit_packets_total "device=\"$vf\".*vf=.*rail=\"rail0\".*interface=\"net1\"} [1-9]"
check '... the port, too' has_metric railhead_nic_receive_bytes_total 'pf="pf0",rail="rail0"'
check '... pause frames, as igb names them' has_metric railhead_nic_pause_frames_total 'pf="pf0".*direction="receive"} 0'
check '... nothing of what it could not read' has_metric railhead_nic_collect_problems ' 0'
check '... DEL' detach a "$vf"
check '... an ADD is killed' killed_add b "$vf"
check '... its VF is fetched from the living namespace' reconciled 0 && check '... and is on the host again' within 180 is_on_host "$vf"
ip netns del b
check '... binds a slot' bound c 0
check '... the RDMA counters of the pod that has it' within 60 has_metric 'railhead_rdma_[a-z_]*_total' 'rail="rail1".*rdma_device="rxe'
check '... DEL' detach c "$slot"
check '... sees that a PF is down' sh -c 'ip link set pf0 down' && check '... its VFs are unhealthy' unhealthy rail0 2
check '... and that it is up' ip link set pf0 up && check '... they are well' offers rail0 2
check '... sees VFs come and go' sh -c 'echo 0 >/sys/class/net/pf1/device/sriov_numvfs' && check '... at once' offers late 0
check '... ends on SIGTERM' daemon_end 0
check '... its system calls were counted' within 60 test -s "$OUT/calls"
check '... all of them are listed' all_are_listed
check '... and those that are listed as called in any case were' all_are_called

# ---- one less ------------------------------------------------------------------------------------
number=0
for left_out in "${NEEDED[@]}"; do
    number=$((number + 1))
    rest=()
    for name in "${NEEDED[@]}"; do [ "$name" = "$left_out" ] || rest+=("$name"); done
    daemon_with "$number" "${rest[@]}"
    check "without $left_out it serves" offers rail0 2
    case $left_out in
        CAP_NET_RAW)
            check '... but it cannot listen for LLDP' hears_no_switch "$number" 'CAP_NET_RAW'
            ;;
        *)
            check '... an ADD is killed' killed_add "pod$number" "$vf"
            check '... and nobody can fetch its VF' not_reconciled "$number" 'not permitted'
            check '... ends on SIGTERM' daemon_end "$number"
            daemon_with 9 "${NEEDED[@]}"
            check '... until all are there again' within 180 is_on_host "$vf"
            check '... and ends' daemon_end 9
            ip netns del "pod$number"
            continue
            ;;
    esac
    check '... ends on SIGTERM' daemon_end "$number"
done
finish
