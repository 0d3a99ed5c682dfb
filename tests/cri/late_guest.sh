#!/bin/bash
# Runs in the guest: tests/cri/run.sh -T gpus tests/cri/late_guest.sh
#
# Pods with GPUs and a pool with late binding, on a real container runtime: kubelet gives
# slots, and what the container gets must be the VF on the switch of its GPU, whichever GPU
# it is. What is checked is what the container itself says, and where its devices are is
# compared by sysfs paths, not by our own programs.
set -u
# shellcheck source=tests/vm/lib.sh
. "$SRC/tests/vm/lib.sh"
# shellcheck source=tests/cri/runtime.sh
. "$SRC/tests/cri/runtime.sh"
# shellcheck source=tests/cri/pod.sh
. "$SRC/tests/cri/pod.sh"
readonly KUBELET=/var/lib/kubelet/device-plugins RESOURCE=railhead.io/roce GPU=example.com/gpu

# ---- the node ----------------------------------------------------------------------------
node() {
    local pf vf
    modprobe -a rdma_rxe rdma_ucm ib_uverbs || return
    for pf in pf0 pf1; do
        make_vfs "$pf" 2 || return
        for vf in 0 1; do give_vf_mac "$pf" "$vf" "02:00:00:00:0${pf#pf}:0$vf" || return; done
    done
    mkdir -p /etc/railhead /etc/cni/net.d "$KUBELET" /tmp/entries
    jq -n --arg node "$(uname -n)" --arg resource "$RESOURCE" '{ version: 1, addresses: { conflictProbeMs: 50, restSeconds: 0 },
        pools: [ { resource: $resource, binding: "late" } ],
        rails: [ range(2) | { name: "rail\(.)", pf: "pf\(.)", vlan: (100 * (. + 1)), softRoce: true,
                              subnet: "10.\(. + 1)00.0.0/24", gateway: "10.\(. + 1)00.0.254", routes: ["10.0.0.0/8"],
                              nodeRanges: { ($node): "10.\(. + 1)00.0.10-10.\(. + 1)00.0.13" } } ] }' >/etc/railhead/fabric.json
    # No emulated GPU has a class that is known for one.
    echo '{ "accelerators": { "vendors": ["1234:0380"] } }' >/etc/railhead/topology.json
    cat >/etc/cni/net.d/10-cluster.conflist <<'CONF'
{ "cniVersion": "1.0.0", "name": "cluster", "plugins": [
  { "type": "bridge", "bridge": "cni0", "isDefaultGateway": true,
    "ipam": { "type": "host-local", "subnet": "10.244.0.0/24" } },
  { "type": "railhead" } ] }
CONF
    kubelet-standin serve --dir "$KUBELET" >"$OUT/kubelet.log" 2>&1 &
    within 60 test -S "$KUBELET/control.sock" && daemon_start
}
daemon_start() {
    railheadd >>"$OUT/railheadd.log" 2>&1 &
    daemon=$!
    kubelet-standin devices --dir "$KUBELET" "$RESOURCE" --wait 4 --timeout 120 >/tmp/devices
}
daemon_stop() { kill "$daemon" && wait "$daemon"; }
find_gpus() { # sets gpus, in PCI order: two on pf0's switch, two on pf1's
    local device vendor class
    gpus=()
    for device in /sys/bus/pci/devices/*; do
        read -r vendor <"$device/vendor" && read -r class <"$device/class" || return
        [ "$vendor-${class%??}" != 0x1234-0x0380 ] || gpus+=("${device##*/}")
    done
    [ ${#gpus[@]} = 4 ]
}
# The node's NICs and GPUs the other way round: near is far.
invert_topology() {
    railctl topo --json >/tmp/topo || return
    jq '{ paths: [ .paths[] | { nic, accelerator, path: (if .path == "SYS" then "PIX" else "SYS" end) } ],
          accelerators: { vendors: ["1234:0380"] } }' /tmp/topo >/etc/railhead/topology.json
}

# ---- pods ------------------------------------------------------------------------------------
# admit NAME SLOTS GPU...: Allocate, and the checkpoint that kubelet writes before it makes
# the sandbox. Sets what the other functions act on: name, uid, pod, devices, allocated.
admit() {
    local slots=$2 word
    name=$1
    shift 2
    kubelet-standin allocate --dir "$KUBELET" "$RESOURCE" "$slots" >/tmp/allocate || return
    printf -v uid '11111111-2222-3333-4444-%012d' $((++pods))
    pod=(--name "$name" --uid "$uid" --log-directory "$POD_LOGS/$name")
    mapfile -t devices < <(jq -r '.devices | sort | .[]' /tmp/allocate)
    allocated=()
    while read -r word; do allocated+=(--cdi "$word"); done < <(jq -r '.response.cdi_devices[]?' /tmp/allocate)
    while read -r word; do allocated+=(--env "$word"); done < <(jq -r '.response.envs | to_entries[] | "\(.key)=\(.value)"' /tmp/allocate)
    jq --arg uid "$uid" --arg resource "$RESOURCE" --arg gpu "$GPU" '[
        { ContainerName: "main", ResourceName: $gpu, DeviceIDs: { "-1": $ARGS.positional } },
        { ContainerName: "main", ResourceName: $resource, DeviceIDs: { "-1": .devices } } ]
        | map({ PodUID: $uid, AllocResp: "" } + .)' /tmp/allocate --args "$@" >"/tmp/entries/$name"
    checkpoint
}
checkpoint() {
    cat /tmp/entries/* 2>/dev/null |
        jq -n '{ Data: { PodDeviceEntries: [ inputs[] ], RegisteredDevices: {} }, Checksum: 1 }' >"$KUBELET/kubelet_internal_checkpoint"
}
prestart() { kubelet-standin prestart --dir "$KUBELET" "$RESOURCE" "${devices[@]}"; }
make_sandbox() { # [OPTION...]
    check 'the sandbox, CNI ADD by the runtime' cri-pod sandbox "${pod[@]}" "$@"
    sandbox=$(tail -n 1 /tmp/check.log)
}
start() { # [OPTION...]: from the sandbox to what the container says
    make_sandbox "$@"
    check '... PreStartContainer' prestart
    check '... the container, with the CDI names of Allocate' container main "${allocated[@]}"
}
forget() { # what kubelet does when a pod has ended
    rm "/tmp/entries/$name" && checkpoint && kubelet-standin release --dir "$KUBELET" "$RESOURCE" "${devices[@]}"
}
end() {
    check '... the end of the pod, CNI DEL by the runtime' cri-pod remove --sandbox "$sandbox"
    check '... kubelet takes its slots back' forget
}
# Without the records of what was allocated, which stay as long as the daemon wants.
remains() { world | grep -v /allocations/; }
home() { diff -u <(echo "$before") <(remains); }

said_why() { tee /tmp/why </tmp/check.log | sed 's/^/      /'; } # of what was just refused
# containerd shows an error's text only; its code is in what the plugin itself answers.
refused_for_later() {
    ip netns add later || return
    jq '.plugins[1] + { cniVersion, name }' /etc/cni/net.d/10-cluster.conflist |
        CNI_COMMAND=ADD CNI_CONTAINERID=later CNI_IFNAME=eth0 CNI_NETNS=/run/netns/later CNI_PATH=/opt/cni/bin \
            CNI_ARGS="IgnoreUnknown=1;K8S_POD_UID=$uid" /opt/cni/bin/railhead >/tmp/answer
    ip netns del later
    jq -e '.code == 11' /tmp/answer || { cat /tmp/answer; return 1; }
}

# ---- where it is ------------------------------------------------------------------------------
# The switch's upstream port, two above its functions: upstream, downstream, function.
switch_of() { # PCI
    local path
    [ -n "$1" ] && [ -e "/sys/bus/pci/devices/$1" ] && path=$(readlink -f "/sys/bus/pci/devices/$1") &&
        path=${path%/*} && echo "${path%/*}"
}
vfs() { jq -r '.env.PCIDEVICE_RAILHEAD_IO_ROCE | split(",")[]' /tmp/seen; }
pf_of() { # VF
    local path
    path=$(readlink "/sys/bus/pci/devices/$1/physfn") && echo "${path##*/}"
}
switches_of_vfs() {
    local vf pf
    for vf in $(vfs); do pf=$(pf_of "$vf") && switch_of "$pf" || return; done | sort
}
switches_of_gpus() { # GPU...
    local gpu
    for gpu in "$@"; do switch_of "$gpu" || return; done | sort
}
# beside GPU...: one VF for each GPU, on its switch.
beside() {
    local gpus
    gpus=$(switches_of_gpus "$@") && [ -n "$gpus" ] && diff <(echo "$gpus") <(switches_of_vfs)
}
apart() { # GPU: on a switch, and not on the GPU's
    local switches
    switches=$(switches_of_vfs) && [ -n "$switches" ] && [ "$switches" != "$(switch_of "$1")" ]
}
# The rails of its interfaces are those of the PFs that its VFs are of.
rails_are_the_pfs() {
    local vf pf
    for vf in $(vfs); do
        pf=$(pf_of "$vf") && basename "/sys/bus/pci/devices/$pf/net/"* || return
    done | sed 's/^pf/rail/' | sort >/tmp/rails
    [ -s /tmp/rails ] && diff /tmp/rails <(jq -r '.interfaces | keys[] | select(startswith("rail"))' /tmp/seen)
}

# shellcheck disable=SC2016 # jq's variable
sees_everything() { # VFS
    local count=$1
    check '... its variable names a VF for each slot' test "$(vfs | sort -u | wc -l)" = "$count"
    check '... its device nodes are rdma_cm and a uverbs for each VF' seen --argjson count "$count" \
        '[.devices[].path | sub("[0-9]+$"; "")] == ["/dev/infiniband/rdma_cm"] + [range($count) | "/dev/infiniband/uverbs"]'
    check '... they are those of the node' numbers_are_the_nodes $((count + 1))
    check '... it may open each of them' seen 'all(.devices[]; .character and .opens)'
    check '... it has eth0 and the rails of its VFs' rails_are_the_pfs
    check '... nccl.conf is the one of its sandbox' conf_is_the_sandboxs
    check '... its HCAs belong to its rails' seen '([.hcas[].netdev] | sort) == [.interfaces | keys[] | select(startswith("rail"))]
        and all(.hcas[]; .type == "RoCE v2")'
    check '... the GID index finds their addresses' gids_are_addresses "$count"
}

gpus=() pods=0 devices=() allocated=() pod=() sandbox='' name='' uid='' daemon=''
need 'PFs, VFs, railheadd' node
need 'two GPUs on each of two switches' find_gpus
need 'the container runtime' runtime_start bridge host-local
check 'kubelet is told of slots, not of VFs' jq -e 'length == 4 and all(.[]; .id | startswith("slot-"))' /tmp/devices
echo '--- railctl topo:'
railctl topo
before=$(remains)

for gpu in "${gpus[@]}"; do
    check "a pod with the GPU $gpu is given a slot" admit "gpu-${gpu//[:.]/-}" 1 "$gpu"
    start
    check "... the VF is on the GPU's switch" beside "$gpu"
    echo "      $gpu: ${devices[*]} is $(vfs) of $(pf_of "$(vfs)")"
    sees_everything 1
    end
    check '... the VF is at home' home
done

check 'a pod with GPUs on two switches is given two slots' admit both 2 "${gpus[0]}" "${gpus[3]}"
start
check '... a VF is beside each GPU' beside "${gpus[0]}" "${gpus[3]}"
sees_everything 2
end
check '... the VFs are at home' home

# Two pods at once, on the switch that is not the first of any order.
check 'a pod with a GPU of the second switch' admit third 1 "${gpus[2]}"
start
check '... has a VF of that switch' beside "${gpus[2]}"
first=("$sandbox" "${devices[@]}") && other=$(vfs)
check 'a pod with the other GPU there, at the same time' admit fourth 1 "${gpus[3]}"
start
check '... has a VF of that switch, too' beside "${gpus[3]}"
check '... another one' test "$(vfs)" != "$other"
end
name=third sandbox=${first[0]} devices=("${first[@]:1}")
end
check '... the VFs are at home' home

# Without the daemon nobody knows what a slot is; code 11 makes kubelet try again.
check 'a pod is given a slot, and railheadd ends' admit waits 1 "${gpus[1]}"
check '... as told' daemon_stop
deny '... its sandbox fails' cri-pod sandbox "${pod[@]}"
said_why
check '... and says what is missing' grep -q 'asking railheadd at /run/railhead/bind.sock' /tmp/why
check '... by the code for later' refused_for_later
check '... the VFs are at home' home
check 'railheadd is back' daemon_start
start --attempt 1
check '... the VF is on the GPU'\''s switch' beside "${gpus[1]}"
end
check '... the VF is at home' home

# On the node's own network no ADD is called, so nothing makes a device of the slot.
check 'a pod on the node'\''s network is given a slot' admit host 1 "${gpus[0]}"
make_sandbox --host-network
deny '... PreStartContainer refuses it' prestart
said_why
check '... and says why' grep -q 'a pod with hostNetwork gets no device' /tmp/why
end
check '... nothing is left of it' home

# What was checked all along can fail.
check 'with a topology.json that says the opposite of what is' invert_topology
check '... railheadd starts' daemon_stop && check '... again' daemon_start
check '... a pod' admit inverted 1 "${gpus[0]}"
start
deny '... has no VF on its GPU'\''s switch' beside "${gpus[0]}"
check '... but on the other' apart "${gpus[0]}"
end
check 'all is as it was before the first pod' home
deny 'railheadd saw pods come and go without an error' grep '"level":"error"' "$OUT/railheadd.log"
daemon_stop
runtime_stop
finish
