#!/bin/bash
# Runs in the guest: tests/system/cri/run.sh -T gpus tests/system/cri/late_guest.sh
#
# Pods with GPUs and a pool with late binding, on a real container runtime: kubelet gives
# slots, and what the container gets must be the VF on the switch of its GPU, whichever GPU
# it is. What is checked is what the container itself says, and where its devices are is
# compared by sysfs paths, not by our own programs.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/system/cri/runtime.sh
. "$SRC/tests/system/cri/runtime.sh"
# shellcheck source=tests/system/cri/pod.sh
. "$SRC/tests/system/cri/pod.sh"
# shellcheck source=tests/system/cri/late.sh
. "$SRC/tests/system/cri/late.sh"

# ---- pods ------------------------------------------------------------------------------------
make_sandbox() { # [OPTION...]
    check 'the sandbox, CNI ADD by the runtime' cri-pod sandbox "${pod[@]}" "$@"
    sandbox=$(tail -n 1 /tmp/check.log)
}
start() { # [OPTION...]: from the sandbox to what the container says
    make_sandbox "$@"
    check '... PreStartContainer' prestart
    check '... the container, with the CDI names of Allocate' container main "${allocated[@]}"
}
end() {
    check '... the end of the pod, CNI DEL by the runtime' cri-pod remove --sandbox "$sandbox"
    check '... kubelet takes its slots back' forget
}
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

# shellcheck disable=SC2016 # jq's variable
sees_everything() { # VFS
    local count=$1
    check '... its variable names a VF for each slot' test "$(vfs | sort -u | wc -l)" = "$count"
    check '... its device nodes are rdma_cm and a uverbs for each VF' seen --argjson count "$count" \
        '[.devices[].path | sub("[0-9]+$"; "")] == ["/dev/infiniband/rdma_cm"] + [range($count) | "/dev/infiniband/uverbs"]'
    check '... they are those of the node' numbers_are_the_nodes $((count + 1))
    check '... it may open each of them' seen 'all(.devices[]; .character and .opens)'
    check '... it has eth0 and the rails of its VFs' rails_are_the_pfs
    check '... nccl.conf is the one of its sandbox' files_are_the_sandboxs
    check '... its HCAs belong to its rails' seen '([.hcas[].netdev] | sort) == [.interfaces | keys[] | select(startswith("rail"))]
        and all(.hcas[]; .type == "RoCE v2")'
    check '... the GID index finds their addresses' gids_are_addresses "$count"
}

need 'PFs, VFs, kubelet' node
need 'railheadd' daemon_start
need 'two GPUs on each of two switches' find_gpus
need 'the container runtime' runtime_start bridge host-local
check 'kubelet gets slots, not VFs' jq -e 'length == 4 and all(.[]; .id | startswith("slot-"))' /tmp/devices
echo '--- railctl topology:'
railctl topology
before=$(remains)

for gpu in "${gpus[@]}"; do
    check "a pod with the GPU $gpu is given a slot" admit "gpu-${gpu//[:.]/-}" 1 "$gpu"
    start
    check "... the VF is on the GPU's switch" beside "$gpu"
    echo "      $gpu: ${devices[*]} is $(vfs) of $(pf_of "$(vfs)")"
    sees_everything 1
    end
    check '... the VF is on the host again' restored
done

check 'a pod with GPUs on two switches is given two slots' admit both 2 "${gpus[0]}" "${gpus[3]}"
start
check '... a VF is beside each GPU' beside "${gpus[0]}" "${gpus[3]}"
sees_everything 2
end
check '... the VFs are on the host again' restored

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
check '... the VFs are on the host again' restored

# Without the daemon nobody knows what a slot is; code 11 makes kubelet try again.
check 'a pod is given a slot, and railheadd ends' admit waits 1 "${gpus[1]}"
check '... on SIGTERM' daemon_stop
deny '... its sandbox fails' cri-pod sandbox "${pod[@]}"
said_why
check '... and says what is missing' grep -q 'asking railheadd at /run/railhead/bind.sock' /tmp/why
check '... by the code for later' refused_for_later
check '... the VFs are on the host again' restored
check 'railheadd is back' daemon_start
start --attempt 1
check '... the VF is on the GPU'\''s switch' beside "${gpus[1]}"
end
check '... the VF is on the host again' restored

# On the node's own network no ADD is called, so nothing makes a device of the slot.
check 'a pod on the node'\''s network is given a slot' admit host 1 "${gpus[0]}"
make_sandbox --host-network
deny '... PreStartContainer refuses it' prestart
said_why
check '... and says why' grep -q 'a pod with hostNetwork gets no device' /tmp/why
end
check '... nothing is left of it' restored

# What was checked all along can fail.
check 'with a topology.json that says the opposite of what is' invert_topology
check '... railheadd starts' daemon_stop && check '... again' daemon_start
check '... a pod' admit inverted 1 "${gpus[0]}"
start
deny '... has no VF on its GPU'\''s switch' beside "${gpus[0]}"
check '... but on the other' apart "${gpus[0]}"
end
check 'all is as it was before the first pod' restored
deny 'railheadd saw pods come and go without an error' grep '"level":"error"' "$OUT/railheadd.log"
daemon_stop
runtime_stop
finish
