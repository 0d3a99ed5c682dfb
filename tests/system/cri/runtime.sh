# shellcheck shell=bash
# runtime.sh - containerd in a guest, for scripts started by tests/system/cri/run.sh:
#
#   . "$SRC/tests/system/cri/runtime.sh"
#   runtime_start NAME...    containerd with our images; NAME: CNI plugins to install
#                            from /mnt/cni, beside railhead and railhead-ipam
#   runtime_stop
# then `cri-pod`, which is in PATH, makes pods. The cluster's network is what the script
# has put into /etc/cni/net.d before.
#
# containerd is Debian's, as its package configures it but for what is in
# containerd.toml. Its files are in a tmpfs, since the guest's root file system cannot be
# below an overlay.
readonly PAUSE_IMAGE=railhead.test/pause:1 SHOW_IMAGE=railhead.test/show:1
# shellcheck disable=SC2034 # for those who source this file
readonly POD_LOGS=/var/log/pods
export PATH=$PATH:$BUILD/bin:/mnt/runtime
containerd_pid=''

# cgroup v2 gives controllers only to children of a group without processes.
runtime_cgroups() {
    local pids pid
    mkdir -p /sys/fs/cgroup/init || return
    # Kernel threads cannot be moved and need not.
    mapfile -t pids </sys/fs/cgroup/cgroup.procs
    for pid in "${pids[@]}"; do echo "$pid" >/sys/fs/cgroup/init/cgroup.procs 2>/dev/null; done
    echo '+pids +memory +cpu' >/sys/fs/cgroup/cgroup.subtree_control
}

runtime_start() {
    local plugin archive
    modprobe -a overlay veth bridge || return
    mkdir -p /var/lib/containerd /etc/containerd /etc/cni/net.d /opt/cni/bin "$POD_LOGS" || return
    mount -t tmpfs tmpfs /var/lib/containerd || return
    runtime_cgroups || return
    for plugin in loopback "$@"; do ln -sf "/mnt/cni/$plugin" /opt/cni/bin/ || return; done
    # With the DaemonSet its init container installs ours.
    [ -e /mnt/images/containers.json ] || ln -sf "$BUILD"/bin/railhead "$BUILD"/bin/railhead-ipam /opt/cni/bin/ || return
    containerd --config "$SRC/tests/system/cri/containerd.toml" >"$OUT/containerd.log" 2>&1 &
    containerd_pid=$!
    # The socket is there before the plugins answer; ctr itself takes seconds here.
    within 120 runtime_listens || { tail -n 20 "$OUT/containerd.log"; return 1; }
    for archive in /mnt/images/*.tar; do ctr -n k8s.io images import "$archive" || return; done
    cri-pod --limit 180 ready "$PAUSE_IMAGE" "$SHOW_IMAGE" || { tail -n 20 "$OUT/containerd.log"; return 1; }
}
runtime_listens() { kill -0 "$containerd_pid" && [ -S /run/containerd/containerd.sock ]; }

runtime_stop() {
    [ -n "$containerd_pid" ] || return 0
    kill "$containerd_pid"
    wait "$containerd_pid"
    containerd_pid=''
}
