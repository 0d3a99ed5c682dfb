#!/bin/bash
# Runs in the guest, by run.sh: a node of the cluster, with containerd and a kubelet that is started again when it ends.
# Then it carries out the orders that come as files in $SYNC.
#
# usage: node_guest.sh NODES
#   NODES   1, or 2: then pf1 is the cluster network between the nodes' pods, and no rail
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/system/cri/runtime.sh
. "$SRC/tests/system/cri/runtime.sh"
# shellcheck source=tests/system/cri/daemonset.sh
. "$SRC/tests/system/cri/daemonset.sh"
export PATH=$PATH:/mnt/node
readonly BRIDGE='{ "type": "bridge", "bridge": "cni0", "isDefaultGateway": true, "ipam": { "type": "host-local", "subnet": "10.244.'$NODE'.0/24" } }'
readonly ADDRESS=10.96.0.$((15 + NODE))

network() {
    ip link set eth0 up && ip address add $ADDRESS/24 dev eth0 && ip route add default via 10.96.0.1 &&
        # QEMU's network asks for the pods' addresses on the wire: so pods reach the service "kubernetes" without kube-proxy.
        echo 1 >/proc/sys/net/ipv4/conf/eth0/proxy_arp &&
        ip link set pf0 up && ip link set pf1 up && modprobe -a rdma_rxe rdma_ucm ib_uverbs || return
    mkdir -p /etc/cni/net.d && echo '{ "cniVersion": "1.0.0", "name": "cluster", "plugins": [ '"$BRIDGE"', { "type": "railhead", "linkTimeoutSeconds": 120 } ] }' \
        >/etc/cni/net.d/10-cluster.conflist
}
# use_multus: instead of the chain.
use_multus() {
    ln -sf /mnt/node/multus /opt/cni/bin/ && rm /etc/cni/net.d/10-cluster.conflist &&
        echo '{ "cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus", "kubeconfig": "/mnt/node/node.admin.kubeconfig",
            "delegates": [ { "cniVersion": "1.0.0", "name": "cluster", "plugins": [ '"$BRIDGE"' ] } ] }' >/etc/cni/net.d/00-multus.conf
}
# join: both PFs are on one wire, and pf0 must not answer for pf1.
join() {
    echo 1 >/proc/sys/net/ipv4/conf/pf0/arp_ignore && ip address add "10.245.0.$((1 + NODE))/24" dev pf1 &&
        ip route add "10.244.$((1 - NODE)).0/24" via "10.245.0.$((2 - NODE))"
}
# kubelet_start: without KVM, a kubelet's housekeeping and garbage collection alone take half of the guest's processor.
kubelet_start() {
    GOGC=400 GODEBUG=asyncpreemptoff=1 kubelet --housekeeping-interval 2m --max-housekeeping-interval 4m \
        --config /etc/kubelet.yaml --kubeconfig "/mnt/node/node$NODE.kubeconfig" --hostname-override "node$NODE" --node-ip $ADDRESS >>"$OUT/kubelet.log" 2>&1 &
    kubelet=$!
}
kubelet_end() { kill "$kubelet"; }
railheadd_dies() { kill -KILL "$(daemonset_pid)"; }
# gpu_plugin: railheadd itself, of another node for all that it keeps, with the emulated GPUs as sriov-network-device-plugin's accelerators,
# for which they have the PCI class in its eyes alone.
gpu_plugin() {
    local gpu
    modprobe vfio-pci || return
    for gpu in /sys/bus/pci/devices/0000:[48]4:00.0; do
        echo vfio-pci >"$gpu/driver_override" && echo "${gpu##*/}" >/sys/bus/pci/drivers_probe || return
    done
    mkdir -p /run/cdi /tmp/gpus/{run,lib,cdi,etc} && echo 0x120000 >/tmp/gpus/class && echo '{ "resourceList": [ { "resourcePrefix": "example.com",
        "resourceName": "gpu", "deviceType": "accelerator", "selectors": [ { "vendors": ["1234"] } ] } ] }' >/tmp/gpus/config.json || return
    unshare --mount bash -ec '
        mount --bind /tmp/gpus/run /run/railhead
        mount --bind /tmp/gpus/lib /var/lib/railhead
        mount --bind /tmp/gpus/cdi /run/cdi
        mount --bind /tmp/gpus/etc /etc/railhead
        for class in /sys/bus/pci/devices/0000:[48]4:00.0/class; do mount --bind /tmp/gpus/class "$class"; done
        exec railheadd --config-file /tmp/gpus/config.json --http-address ""' >"$OUT/gpus.log" 2>&1 &
}
prepare_kubelet() {
    # Its parents are in the initramfs, whose size nobody can tell.
    mkdir -p /var/lib/kubelet && mount -t tmpfs tmpfs /var/lib/kubelet && mount --make-rshared / || return
    echo '+cpuset +hugetlb +io' >/sys/fs/cgroup/cgroup.subtree_control || return
    cat >/etc/kubelet.yaml <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: /mnt/node/ca.crt } }
authorization: { mode: Webhook }
tlsCertFile: /mnt/node/node$NODE.crt
tlsPrivateKeyFile: /mnt/node/node$NODE.key
cgroupDriver: cgroupfs
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failSwapOn: false
resolvConf: ""
runtimeRequestTimeout: 15m
nodeStatusUpdateFrequency: 10s
evictionHard: { memory.available: 50Mi }
END
}
# orders: each in a shell of its own, with what is defined here; its output and status go back.
orders() {
    local order name
    while :; do
        for order in "$SYNC"/order-*; do
            [ -e "$order" ] || continue
            name=${order##*/order-}
            [ "$name" != end ] || return 0
            mv "$order" /tmp/order
            # shellcheck disable=SC1091
            (. /tmp/order) >"$SYNC/.answer" 2>&1
            echo $? >>"$SYNC/.answer"
            mv "$SYNC/.answer" "$SYNC/answer-$name"
        done
        kill -0 "$kubelet" 2>/dev/null || kubelet_start
        pause 0.3
    done
}

network && { [ "$1" = 1 ] || join; } && runtime_start bridge host-local && prepare_kubelet || exit 1
kubelet_start
orders
