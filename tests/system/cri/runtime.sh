# shellcheck shell=bash
# runtime.sh - a container runtime in a guest, for scripts started by tests/system/cri/run.sh:
#
#   . "$SRC/tests/system/cri/runtime.sh"
#   runtime_start NAME...    the runtime with our images; NAME: CNI plugins to install
#                            from /mnt/cni, beside railhead and railhead-ipam
#   runtime_stop
# then `cri-pod`, which is in PATH, makes pods. The cluster's network is what the script
# has put into /etc/cni/net.d before.
#
# containerd is Debian's, as its package configures it but for what is in
# containerd.toml. Its files are in a tmpfs, since the guest's root file system cannot be
# below an overlay. With run.sh -r it is CRI-O, as crio.conf has it.
readonly PAUSE_IMAGE=railhead.test/pause:1 SHOW_IMAGE=railhead.test/show:1
# shellcheck disable=SC2034 # for those who source this file
readonly POD_LOGS=/var/log/pods
export PATH=$PATH:$BUILD/bin:/mnt/runtime
runtime_pid=''

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
    local plugin network=()
    modprobe -a overlay veth bridge || return
    mkdir -p /etc/cni/net.d /opt/cni/bin "$POD_LOGS" || return
    runtime_cgroups || return
    # In a user namespace a container gets a /proc only if nothing lies over the host's (mount_too_revealing() in fs/namespace.c).
    umount /proc/sys/kernel/random/uuid 2>/dev/null
    for plugin in loopback "$@"; do ln -sf "/mnt/cni/$plugin" /opt/cni/bin/ || return; done
    # With the DaemonSet its init container installs ours. Until then CRI-O reports that the network is not ready.
    if [ -e /mnt/images/containers.json ]; then
        network=(--host-network)
    else
        ln -sf "$BUILD"/bin/railhead "$BUILD"/bin/railhead-ipam /opt/cni/bin/ || return
    fi
    if [ -d /mnt/crio ]; then crio_start; else containerd_start; fi &&
        cri-pod --limit 180 ready "${network[@]}" "$PAUSE_IMAGE" "$SHOW_IMAGE"
}
runtime_listens() { kill -0 "$runtime_pid" && [ -S /run/containerd/containerd.sock ]; }

containerd_start() {
    local archive
    mkdir -p /var/lib/containerd /etc/containerd && mount -t tmpfs tmpfs /var/lib/containerd || return
    containerd --config "$SRC/tests/system/cri/containerd.toml" >"$OUT/containerd.log" 2>&1 &
    runtime_pid=$!
    # The socket is there before the plugins answer; ctr itself takes seconds here.
    within 120 runtime_listens || return
    for archive in /mnt/images/*.tar; do ctr -n k8s.io images import "$archive" || return; done
}

crio_start() {
    local library archive
    # CRI-O gives conmon no LD_LIBRARY_PATH. The guest's own libraries stay.
    for library in /mnt/crio/lib/*; do
        [ -e "/usr/lib/x86_64-linux-gnu/${library##*/}" ] || ln -s "$library" /usr/lib/x86_64-linux-gnu/ || return
    done
    mkdir -p /var/lib/containers /etc/containers /var/tmp && mount -t tmpfs tmpfs /var/lib/containers || return
    echo '{ "default": [ { "type": "insecureAcceptAnything" } ] }' >/etc/containers/policy.json
    for archive in /mnt/images/*.tar; do crio_import "$archive" || return; done
    /mnt/crio/bin/crio --config "$SRC/tests/system/cri/crio.conf" --config-dir '' >"$OUT/crio.log" 2>&1 &
    runtime_pid=$!
    within 120 runtime_listens
}
# CRI-O has no command for it, and CRI has none. skopeo takes the only image of a layout.
crio_import() { # ARCHIVE
    local layout=/var/lib/containers/layout image
    rm -rf "$layout" && mkdir -p "$layout" && tar -xf "$1" -C "$layout" && mv "$layout/index.json" /tmp/index.json || return
    while read -r image; do
        jq --arg image "$image" '.manifests |= map(select(.annotations["io.containerd.image.name"] == $image))' /tmp/index.json >"$layout/index.json" &&
            /mnt/crio/bin/skopeo copy -q "oci:$layout" \
                "containers-storage:[overlay@/var/lib/containers/storage+/run/containers/storage]$image" || return
    done < <(jq -r '.manifests[].annotations["io.containerd.image.name"]' /tmp/index.json)
    rm -rf "$layout"
}

runtime_stop() {
    [ -n "$runtime_pid" ] || return 0
    kill "$runtime_pid"
    wait "$runtime_pid"
    runtime_pid=''
}
