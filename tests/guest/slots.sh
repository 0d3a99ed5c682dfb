#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD -T gpus tests/guest/slots.sh
#
# A pool with late binding on real VFs: free slots per NUMA node are free VFs per node whatever
# is bound to what, the configuration changes while it runs, Multus names slots, and of two
# daemons exactly one binds.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
readonly CHECKPOINT=/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint

# ---- the node ----------------------------------------------------------------------------
# Three VFs on node 0, two on node 1: counting tells the nodes apart.
late_pool() { fabric '.rails[].softRoce = true | . + { pools: [ { resource: "railhead.io/roce", binding: "late", rails: '"$1"' } ] }'; } # RAILS
readonly BOTH='["rail0", "rail1"]'
node() {
    modprobe -a rdma_rxe ib_uverbs || return
    make_vfs pf0 3 && make_vfs pf1 2 && mkdir -p /etc/railhead "${CHECKPOINT%/*}" || return
    echo '{ "accelerators": { "vendors": ["1234:0380"] } }' >/etc/railhead/topology.json
    late_pool "$BOTH" && kubelet_start && daemon_start 0 && offers roce 5
}
# The other way round: what is near is stated to be far.
invert_topology() {
    railctl topology -o json >/tmp/topo || return
    jq '{ paths: [ .paths[] | { nic, accelerator, path: (if .path == "SYS" then "PIX" else "SYS" end) } ],
          accelerators: { vendors: ["1234:0380"] } }' /tmp/topo >/etc/railhead/.new && mv /etc/railhead/.new /etc/railhead/topology.json
}
restore_topology() {
    echo '{ "accelerators": { "vendors": ["1234:0380"] } }' >/etc/railhead/.new && mv /etc/railhead/.new /etc/railhead/topology.json
}

# ---- pods ----------------------------------------------------------------------------------
# What kubelet has written by the time of ADD: pods' slots and GPUs.
given='[]' slot='' vf='' vfs=() at_once=()
give() { # POD GPU SLOT...
    given=$(jq -c --arg pod "$1" --arg gpu "$2" '. + [
        { PodUID: $pod, ContainerName: "main", ResourceName: "example.com/gpu", DeviceIDs: { "-1": [ $gpu ] }, AllocResp: "" },
        { PodUID: $pod, ContainerName: "main", ResourceName: "railhead.io/roce", DeviceIDs: { "-1": $ARGS.positional }, AllocResp: "" } ]' \
        --args "${@:3}" <<<"$given") && checkpoint
}
take() { given=$(jq -c --arg pod "$1" 'map(select(.PodUID != $pod))' <<<"$given") && checkpoint; } # POD
checkpoint() {
    jq '{ Data: { PodDeviceEntries: ., RegisteredDevices: {} }, Checksum: 1 }' <<<"$given" >"$CHECKPOINT.new" && mv "$CHECKPOINT.new" "$CHECKPOINT"
}
# attach POD GPU: a pod with one slot, which Multus names in its ADD. Sets slot and vf.
attach() {
    allocate roce 1 && slot=${devices[0]} && give "$1" "$2" "$slot" && { [ -e "/run/netns/$1" ] || pod "$1"; } && add "$1" "$slot"
}
add() { # POD SLOT: sets vf
    cni add "$1" "$2" -args "IgnoreUnknown=1;K8S_POD_UID=$1" >/tmp/added || { cat /tmp/added; return 1; }
    vf=$(device_of "$1" "$2") && [ -n "$vf" ]
}
detach() { # POD SLOT
    cni del "$1" "$2" -args "IgnoreUnknown=1;K8S_POD_UID=$1" && take "$1" && release roce "$2"
}
device_of() { jq -r --arg slot "$2" '.devices[] | select(.slot == $slot).device' "/run/railhead/attachments/$1/rails@net1.json"; } # POD SLOT
numa_of() { cat "/sys/bus/pci/devices/$1/numa_node"; } # PCI
beside() { [ "$(numa_of "$1")" = "$(numa_of "$2")" ]; } # GPU VF

# ---- what kubelet knows --------------------------------------------------------------------
# free_slots NODE: of those that no pod has, as kubelet knows them.
bound_slots() {
    find /run/railhead/locks -name 'slot-*.lock' ! -empty | jq -Rnc '[inputs | sub(".*/"; "") | rtrimstr(".lock")]'
}
slots_of_node() { seen roce | jq --argjson bound "$(bound_slots)" --argjson node "$1" '[ .[] | select((.id | IN($bound[]) | not) and .numa == $node) ] | length'; }
free_vfs() { # NODE: VFs of its PF that no pod has, by sysfs and the journal
    local path name free=0
    for path in "/sys/class/net/pf$1/device/"virtfn*; do
        name=$(basename "$(readlink "$path")")
        [ -s "/run/railhead/locks/$name.lock" ] || free=$((free + 1))
    done
    echo "$free"
}
agree() { [ "$(slots_of_node 0) $(slots_of_node 1)" = "$(free_vfs 0) $(free_vfs 1)" ]; }
# agrees N0 N1: within a moment, and it is these numbers.
agrees() {
    if within 60 agree && [ "$(free_vfs 0) $(free_vfs 1)" = "$1 $2" ]; then return; fi
    echo "slots: $(slots_of_node 0) $(slots_of_node 1), VFs: $(free_vfs 0) $(free_vfs 1)"
    return 1
}
slot_is_at() { within 60 numa_of_slot_is "$1" "$2"; } # SLOT NODE
numa_of_slot_is() { seen roce | jq -e --arg slot "$1" --argjson node "$2" 'any(.[]; .id == $slot and .numa == $node)'; }

check 'railheadd offers slots' node
[ "$failures" = 0 ] || { cat "$OUT"/*.log; finish; }
check 'as many per NUMA node as there are VFs' agrees 3 2
readonly NEAR0=0000:44:00.0 NEAR1=0000:84:00.0 # GPUs

# ---- across NUMA nodes ---------------------------------------------------------------------
# Two pods for the second node's GPU take its two VFs, whatever their slots' nodes are.
check 'a pod with a GPU of node 1' attach a "$NEAR1" && check '... has a VF of node 1' beside "$NEAR1" "$vf"
slot_a=$slot vf_a=$vf
check '... its slot is reported there' slot_is_at "$slot_a" 1
check '... free slots are free VFs' agrees 3 1
check 'another one' attach b "$NEAR1" && check '... has the other VF of node 1' beside "$NEAR1" "$vf"
slot_b=$slot
check '... which is another one' test "$vf" != "$vf_a"
check '... free slots are free VFs, all on node 0' agrees 3 0
check 'a pod without a near VF has one all the same' attach c "$NEAR1" && check '... of node 0' beside "$NEAR0" "$vf"
slot_c=$slot
check '... free slots are free VFs' agrees 2 0
check 'DEL' detach a "$slot_a"
check '... gives node 1 its slot back' agrees 2 1
check 'railheadd is killed' daemon_end 0 KILL
check '... and back' daemon_start 0
check '... registered' within 120 least 0 '"registered with kubelet"' 2
check '... and tells the same' agrees 2 1
check '... DEL of the others' detach b "$slot_b" && check '... both' detach c "$slot_c"
check '... all is as it was' agrees 3 2
check '... nothing is left' nothing_left

# ---- the configuration changes -----------------------------------------------------------------
# A pod with the GPU soon has a VF of this node.
soon_at() { # NODE GPU
    local end=$((SECONDS + 60))
    while attach probe "$2" && detach probe "$slot" && [ "$(numa_of "$vf")" != "$1" ]; do
        [ "$SECONDS" -lt "$end" ] || { echo "$vf is on node $(numa_of "$vf")"; return 1; }
    done
    [ "$(numa_of "$vf")" = "$1" ]
}
check 'topology.json says that near is far' invert_topology
check '... soon a pod with a GPU of node 0 has a VF of node 1' soon_at 1 "$NEAR0"
check 'it says that no more' restore_topology
check '... soon such a pod has a VF of node 0' soon_at 0 "$NEAR0"
echo '{ "paths": [' >/etc/railhead/.new && mv /etc/railhead/.new /etc/railhead/topology.json
check 'it is broken: pods have VFs all the same' attach probe "$NEAR0" && check '... DEL' detach probe "$slot"
check 'it is whole' restore_topology
check 'a pod has a VF of node 1' attach a "$NEAR1"
slot_a=$slot
check 'the pool loses rail0 while it runs' late_pool '["rail1"]'
check '... kubelet has the slots of rail1' within 120 has roce 2 Healthy
check '... that of the pod among them' knows roce "$slot_a"
check '... free slots are free VFs' test "$(slots_of_node 0) $(slots_of_node 1)" = '0 1'
check '... DEL' detach a "$slot_a"
check 'the pool has both rails again' late_pool "$BOTH"
check '... kubelet has all slots' offers roce 5
check '... free slots are free VFs' agrees 3 2

# ---- two daemons -------------------------------------------------------------------------------
bound_by() { grep -c '"msg":"bound"' "$OUT/railheadd-$1.log"; } # NUMBER: so many slots so far, as logged after the answer
# pods_at_once POD...: ADDs at the same time; each has its own VF or has to come again. They
# come again, too, when kubelet refuses them while it takes the resource's daemon for gone.
pods_at_once() {
    local name pids=() slots=() i
    within 60 allocate roce $# || return
    slots=("${devices[@]}")
    for ((i = 0; i < $#; i++)); do
        name=${*:i+1:1}
        give "$name" "$NEAR1" "${slots[i]}" || return
        [ -e "/run/netns/$name" ] || pod "$name" || return
    done
    for ((i = 0; i < $#; i++)); do
        until_added "${*:i+1:1}" "${slots[i]}" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || return; done
    at_once=("${slots[@]}")
    mapfile -t vfs < <(find /run/railhead/locks -name '0000:*.lock' ! -empty) # and each is one pod's
    [ ${#vfs[@]} = $# ] && [ "$(cat "${vfs[@]}" | sort -u | wc -l)" = $# ] && within 60 agree
}
# As kubelet, which tries again what is refused for now.
until_added() { # POD SLOT
    local end=$((SECONDS + 120))
    until cni add "$1" "$2" -args "IgnoreUnknown=1;K8S_POD_UID=$1" >"/tmp/added-$1" 2>&1; do
        if ! grep -q '"code":11' "/tmp/added-$1" || [ "$SECONDS" -ge "$end" ]; then cat "/tmp/added-$1"; return 1; fi
    done
}
all_gone() { # POD...
    local i=0 name
    for name in "$@"; do detach "$name" "${at_once[i++]}" || return; done
}
is_standby() { within 120 logged "$1" 'newer'; }
# kubelet takes the end of the old daemon's stream for the end of the new one's (1.36), until the
# new one has registered once more: that is not ours to fix. No slot goes for all that.
watch_lists roce
check 'a second railheadd starts' daemon_start 1
check '... registers' within 120 logged 1 '"registered with kubelet"'
check '... and the first stands by' is_standby 0
before=$(bound_by 0)
check 'five pods at once have five VFs' pods_at_once p0 p1 p2 p3 p4
check '... bound by the second alone' test "$(bound_by 0)" = "$before"
check '... DEL' all_gone p0 p1 p2 p3 p4
watch_end
check 'kubelet has lost no slot' never roce 'length != 5'
check '... and has all of them' offers roce 5
registered=$(grep -c '"registered with kubelet"' "$OUT/railheadd-0.log")
check 'the second is killed' daemon_end 1 KILL
check '... the first has the resource again' within 120 least 0 '"registered with kubelet"' $((registered + 1))
check '... all slots' offers roce 5
check 'five pods at once have five VFs' pods_at_once p0 p1 p2 p3 p4
check '... bound by the first' within 60 least 0 '"msg":"bound"' $((before + 5))
check '... DEL' all_gone p0 p1 p2 p3 p4
registered=$(grep -c '"registered with kubelet"' "$OUT/railheadd-1.log") standby=$(grep -c 'newer' "$OUT/railheadd-0.log")
check 'a third starts, and the first ends: an update' daemon_start 1 && check '... registers' within 120 least 1 '"registered with kubelet"' $((registered + 1))
check '... the first stands by' within 120 least 0 'newer' $((standby + 1))
watch_lists roce
check '... the first ends on SIGTERM' daemon_end 0
check 'five pods at once have five VFs' pods_at_once p0 p1 p2 p3 p4
check '... DEL' all_gone p0 p1 p2 p3 p4
watch_end
check '... kubelet has lost no slot' never roce 'length != 5'
check '... and has all of them' offers roce 5
check 'all is as it was' agrees 3 2
check '... nothing is left' nothing_left
deny 'no railheadd met an error' grep -h '"level":"error"' "$OUT/railheadd-0.log" "$OUT/railheadd-1.log"
check '... the last ends on SIGTERM' daemon_end 1
finish
