#!/bin/bash
# late.sh - the demo's part on a node with GPUs and a container runtime; demo.sh runs it in a
# guest of topology gpus: two GPUs on each of two PCIe switches, and a NIC with two VFs.
# usage: late.sh FAULT            FAULT: none or topology
# Four pods at once, each with one GPU and one slot of a pool with late binding. What a
# container has is what it prints itself; where it is comes from sysfs. Railhead is what the
# DaemonSet's image brings.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/system/cri/runtime.sh
. "$SRC/tests/system/cri/runtime.sh"
# shellcheck source=tests/system/cri/pod.sh
. "$SRC/tests/system/cri/pod.sh"
# shellcheck source=tests/system/cri/late.sh
. "$SRC/tests/system/cri/late.sh"
# shellcheck source=tests/system/cri/daemonset.sh
. "$SRC/tests/system/cri/daemonset.sh"
# shellcheck source=tests/system/demo/report.sh
. "$SRC/tests/system/demo/report.sh"
fault=$1
# Neither in PCI order nor switch by switch: a plugin that takes the first free VF fails.
readonly ORDER=(3 0 2 1)

# The stand-in of kubelet has a directory of its own (tests/system/cri/late.sh).
stand_in() {
    mkdir -p "$CONFIG_MAPS/railhead-fabric" && mv /etc/railhead/fabric.json "$CONFIG_MAPS/railhead-fabric/" || return
    jq --arg at "$KUBELET" '(.[] | select(.name == "railheadd")) |= (.command += ["--kubelet-dir=\($at)"]
        | .mounts += [{ from: $at, to: $at, readOnly: false, followsHost: false }])' "$CONTAINERS" >/tmp/containers.json &&
        CONTAINERS=/tmp/containers.json
}
daemon_start() { daemonset_start 1 && kubelet-standin devices --dir "$KUBELET" "$RESOURCE" --wait 4 --timeout 120 >/tmp/devices; }
daemon_stop() { cri-pod remove --sandbox "$daemonset"; }
railctl() { nsenter -t "$(daemonset_pid)" -m /usr/bin/railctl "$@"; } # as "kubectl exec" has it

start_node() {
    step "a node with GPUs: PFs, VFs, a pool with late binding"
    need "PFs, VFs, kubelet" node
    need "two GPUs on each of two switches" find_gpus
    need "the container runtime" runtime_start bridge host-local
    step "the DaemonSet's pod, from its image: CNI plugins and fabric come to the host, railheadd runs"
    need "railheadd" stand_in && need "railheadd" daemon_start
    ls -l /opt/cni/bin/railhead* | show
    if [ "$fault" = topology ]; then
        need "planting the fault" invert_topology
        need "railheadd with it" daemon_stop && need "railheadd with it" daemon_start
    fi
    railctl topology | show
    before=$(remains)
}

slots_only() { jq -e 'length == 4 and all(.[]; .id | startswith("slot-"))' /tmp/devices; }
sandbox() { cri-pod sandbox "${pod[@]}" >/tmp/sandbox && sandbox=$(tail -n 1 /tmp/sandbox); }
# Of what the container prints: one device of the resource, its nodes and no others.
sees_its_devices() {
    [ "$(vfs | wc -l)" = 1 ] || { echo "its variable: $(vfs)"; return 1; }
    numbers_are_the_nodes 2 && seen 'all(.devices[]; .character and .opens)' && rails_are_the_pfs
}
sees_its_conf() { files_are_the_sandboxs && gids_are_addresses 1; }
on() { local path; path=$(switch_of "$1") && echo "${path##*/}"; } # PCI: its switch
one_row() { # GPU: of the table of where things are
    local vf state=FAIL
    vf=$(vfs) && [ -n "$vf" ] || return
    ! beside "$1" >/tmp/beside || state=ok
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$(on "$1")" "$vf" "$(on "$(pf_of "$vf")")" "$state" >>"$OUT/bound"
    [ $state = ok ] || { cat /tmp/beside; return 1; }
}

run_pod() { # GPU
    step "a pod with the GPU $1"
    need "Allocate" admit "gpu-${1//[:.]/-}" 1 "$1"
    echo "      kubelet gave ${devices[*]}"
    held sandbox "the runtime makes the sandbox: CNI ADD binds the slot" sandbox || return
    held prestart "PreStartContainer accepts" prestart
    held container "the runtime makes the container with the CDI name of the slot" container main "${allocated[@]}" || return
    jq -c '{ env, devices: [ .devices[].path ], ncclConf }' /tmp/seen | show
    held beside "the VF is on the switch of the pod's GPU, whichever GPU it is" one_row "$1"
    held devices "the container has its variable, its device nodes and no others" sees_its_devices
    held conf "its nccl.conf has the GID of its own address" sees_its_conf
    railctl nccl show "$sandbox" | show
    if held verify "railctl nccl verify: its NIC matches" railctl nccl verify "$sandbox"; then show </tmp/held.log; fi
    sandboxes+=("$sandbox")
}

end_pods() {
    step "the pods end"
    for sandbox in "${sandboxes[@]}"; do held remove "the runtime removes each pod" cri-pod remove --sandbox "$sandbox"; done
    held restored "VFs, RDMA devices, sandboxes and files are as before" restored
    held end "railheadd ends on SIGTERM" daemon_stop
    runtime_stop
}

: >"$OUT/results"
: >"$OUT/bound"
sandboxes=()
start_node
held slots "kubelet gets slots, not VFs" slots_only
for i in "${ORDER[@]}"; do run_pod "${gpus[i]}"; done
end_pods
