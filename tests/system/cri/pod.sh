# shellcheck shell=bash disable=SC2154 # sourced by scripts that set the variables it reads
# pod.sh - what a container says, and what a pod may leave behind, for scripts in a guest
# with a container runtime. They set
#
#   pod       options of cri-pod that name the pod: --name, --uid, --log-directory
#   sandbox   the id of its sandbox
# and daemonset.sh sets daemonset, whose pod is part of the node.

need() { # WHAT COMMAND...: without it nothing else makes sense
    local what=$1
    shift
    "$@" && return
    failed "$what"
    tail -n 20 "$OUT"/*.log
    finish
}

# world: all of the node that a pod could leave changed.
world() {
    local file
    ip -d -j link show | jq -c 'sort_by(.ifname)[] | select(.ifname != "cni0")
        | [.ifname, .address, .mtu, (.flags - ["LOWER_UP"]), .altnames, .ifalias, .vfinfo_list]'
    ls /sys/class/infiniband
    # CRI-O pins the node's own for each pod on the node's network, as railheadd's.
    for file in /run/netns/*; do [ ! -e "$file" ] || [ "$file" -ef /proc/1/ns/net ] || echo "$file"; done
    find /run/railhead /run/cdi -mindepth 1 ! -type d ! -path '*/locks/*' ! -path '*/tenants/*' ! -name 'attach.log*' ! -name rdma-mode 2>/dev/null | sort
    cri-pod list | grep -vxF -e "${daemonset:-none}"
}

# ---- what the container says, in /tmp/seen -------------------------------------------------
seen() { jq -e "$@" /tmp/seen; }
container() { # NAME [OPTION...]
    cri-pod container "${pod[@]}" --sandbox "$sandbox" --container "$1" --image "$SHOW_IMAGE" "${@:2}" >/tmp/seen 2>/tmp/error ||
        { cat /tmp/error; return 1; }
}
# numbers_are_the_nodes COUNT: its device nodes are the node's devices: /dev/infiniband in
# the guest, by number.
numbers_are_the_nodes() {
    local path number major minor count=0
    while read -r path number; do
        read -r major minor < <(stat -c '%t %T' "$path") || return
        [ "$((16#$major)):$((16#$minor))" = "$number" ] || { echo "$path is $number in the container"; return 1; }
        count=$((count + 1))
    done < <(jq -r '.devices[] | "\(.path) \(.number)"' /tmp/seen)
    [ "$count" = "$1" ] || { echo "$count device nodes, not $1"; return 1; }
}
# files_are_the_sandboxs: what NCCL reads is, byte by byte, what ADD has written, where it has.
files_are_the_sandboxs() {
    file_is_the_sandboxs nccl.conf /etc/nccl.conf && file_is_the_sandboxs nccl.conf /etc/rccl.conf &&
        file_is_the_sandboxs topology.xml /var/run/nvidia-topologyd/virtualTopology.xml
}
file_is_the_sandboxs() { # NAME PATH
    local file=/run/railhead/nccl/$sandbox/$1
    if [ ! -e "$file" ]; then seen --arg path "$2" '.files[$path].text == null'; return; fi
    seen -j --arg path "$2" '.files[$path].text' | cmp - "$file"
}
# gids_are_addresses COUNT: the GID at the index that nccl.conf gives is the IPv4 address of
# that HCA's interface.
gids_are_addresses() {
    local name netdev gid address octets want count=0
    while read -r name netdev gid address; do
        IFS=. read -ra octets <<<"$address"
        printf -v want '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "${octets[@]}"
        [ "$gid" = "$want" ] || { echo "$name has $gid at the index, $netdev has $address"; return 1; }
        count=$((count + 1))
    done < <(jq -r '.interfaces as $all | .hcas[] | "\(.name) \(.netdev) \(.gid) \($all[.netdev][0])"' /tmp/seen)
    [ "$count" = "$1" ] || { echo "$count HCAs, not $1"; return 1; }
}
