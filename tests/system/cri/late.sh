# shellcheck shell=bash disable=SC2034 # its variables are for those who source it
# late.sh - a node with GPUs and a pool with late binding, pods that kubelet admits to it, and
# where in it things are, for scripts in a guest with a container runtime and topology gpus.
# They have sourced lib.sh, runtime.sh and pod.sh.
#
# kubelet's stand-in has a directory of its own: what pods were given, GPUs included, is
# written here, in kubelet's place.
readonly KUBELET=/run/kubelet-standin RESOURCE=railhead.io/roce GPU=example.com/gpu
readonly CHECKPOINT=/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
gpus=() pods=0 devices=() allocated=() pod=() sandbox='' name='' uid='' daemon='' before=''

# ---- the node ----------------------------------------------------------------------------
node() {
    local pf vf
    modprobe -a rdma_rxe rdma_ucm ib_uverbs || return
    for pf in pf0 pf1; do
        make_vfs "$pf" 2 || return
        for vf in 0 1; do give_vf_mac "$pf" "$vf" "02:00:00:00:0${pf#pf}:0$vf" || return; done
    done
    mkdir -p /etc/railhead /etc/cni/net.d "$KUBELET" /tmp/entries "${CHECKPOINT%/*}"
    jq -n --arg node "$(uname -n)" --arg resource "$RESOURCE" '{ version: 1, addresses: { conflictProbeMs: 50, reuseDelaySeconds: 0 },
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
  { "type": "railhead", "linkTimeoutSeconds": 120 } ] }
CONF
    kubelet-standin serve --dir "$KUBELET" >"$OUT/kubelet.log" 2>&1 &
    within 60 test -S "$KUBELET/control.sock"
}
daemon_start() {
    railheadd --kubelet-dir "$KUBELET" >>"$OUT/railheadd.log" 2>&1 &
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
    railctl topology -o json >/tmp/topo || return
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
        jq -n '{ Data: { PodDeviceEntries: [ inputs[] ], RegisteredDevices: {} }, Checksum: 1 }' >"$CHECKPOINT.new" &&
        mv "$CHECKPOINT.new" "$CHECKPOINT"
}
prestart() { kubelet-standin prestart --dir "$KUBELET" "$RESOURCE" "${devices[@]}"; }
forget() { # what kubelet does when a pod has ended
    rm "/tmp/entries/$name" && checkpoint && kubelet-standin release --dir "$KUBELET" "$RESOURCE" "${devices[@]}"
}
# Without the records of what was allocated, which stay as long as the daemon wants.
remains() { world | grep -v /allocations/; }
restored() { diff -u <(echo "$before") <(remains); }


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
