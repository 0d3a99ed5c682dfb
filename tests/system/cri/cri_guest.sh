#!/bin/bash
# Runs in the guest: tests/system/cri/run.sh tests/system/cri/cri_guest.sh [ATTACHMENTS]
#
# Pods with two VFs on a real container runtime, the VFs chained behind the cluster's
# network: Allocate by railheadd, sandbox with CNI ADD, PreStartContainer, CreateContainer
# with CDI names, as kubelet does it: one container; an init container and two others, of
# which one starts again. What is checked is what the containers themselves say.
# Then a pod with hostUsers: false, which attacks the host's links.
# railheadd and the CNI plugins are those of the DaemonSet's image, which is replaced by a newer
# one under a running pod.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/system/cri/runtime.sh
. "$SRC/tests/system/cri/runtime.sh"
# shellcheck source=tests/system/cri/pod.sh
. "$SRC/tests/system/cri/pod.sh"
# shellcheck source=tests/system/cri/daemonset.sh
. "$SRC/tests/system/cri/daemonset.sh"
readonly KUBELET=/var/lib/kubelet/device-plugins RESOURCE=railhead.io/roce
readonly POD_UID=11111111-2222-3333-4444-555555555555 SEVERAL_UID=66666666-7777-8888-9999-000000000000
readonly attachments=${1:-20}
pod=(--name train --uid "$POD_UID" --log-directory "$POD_LOGS/train")

# ---- the node ----------------------------------------------------------------------------
node() {
    local pf vf
    modprobe -a rdma_rxe rdma_ucm ib_uverbs || return
    for pf in pf0 pf1; do
        make_vfs "$pf" 2 || return
        for vf in 0 1; do give_vf_mac "$pf" "$vf" "02:00:00:00:0${pf#pf}:0$vf" || return; done
    done
    mkdir -p "$CONFIG_MAPS/railhead-fabric" /etc/cni/net.d "$KUBELET"
    jq -n --arg node "$(uname -n)" '{ version: 1, addresses: { conflictProbeMs: 50, reuseDelaySeconds: 0 }, ncclConfig: { topology: "always" },
        rails: [ range(2) | { name: "rail\(.)", pf: "pf\(.)", vlan: (100 * (. + 1)), softRoce: true,
                              subnet: "10.\(. + 1)00.0.0/24", gateway: "10.\(. + 1)00.0.254", routes: ["10.0.0.0/8"],
                              nodeRanges: { ($node): "10.\(. + 1)00.0.10-10.\(. + 1)00.0.13" } } ] }' >"$CONFIG_MAPS/railhead-fabric/fabric.json"
    cat >/etc/cni/net.d/10-cluster.conflist <<'END'
{ "cniVersion": "1.0.0", "name": "cluster", "disableCheck": true, "plugins": [
  { "type": "bridge", "bridge": "cni0", "isDefaultGateway": true,
    "ipam": { "type": "host-local", "subnet": "10.244.0.0/24" } },
  { "type": "railhead", "linkTimeoutSeconds": 120 } ] }
END
    kubelet-standin serve --dir "$KUBELET" >"$OUT/kubelet.log" 2>&1 &
    within 60 test -S "$KUBELET/control.sock"
}
offered() { kubelet-standin devices --dir "$KUBELET" "$RESOURCE" --wait 4 --timeout 120 >/tmp/devices; }
installed() { cmp "$BUILD/bin/railhead" /opt/cni/bin/railhead && cmp "$BUILD/bin/railhead-ipam" /opt/cni/bin/railhead-ipam; }
verified() { railctl nccl verify default/train; }
# railheadd's list answers so to what it does not name, the runtime's does not. In containerd's bundle, or CRI-O's.
answers_enosys() {
    local bundles
    mapfile -t bundles < <(find /run/containerd /run/containers -name config.json 2>/dev/null)
    jq -s -e 'map(select(.process.args[0] == "railheadd")) | length > 0 and all(.[]; .linux.seccomp.defaultErrnoRet == 38)' "${bundles[@]}"
}

# Admission: Allocate, and the checkpoint that kubelet writes before it makes the sandbox.
admit() { kubelet-standin admit --dir "$KUBELET" "$@" >/tmp/admitted; } # --uid UID RESOURCE CONTAINER=COUNT...
# is_given CONTAINER: what it was given, in devices and allocated.
is_given() {
    local word
    jq -e --arg container "$1" --arg resource "$RESOURCE" '.[$container][$resource]' /tmp/admitted >/tmp/allocate || return
    mapfile -t devices < <(jq -r '.devices | sort | .[]' /tmp/allocate)
    allocated=()
    while read -r word; do allocated+=(--cdi "$word"); done < <(jq -r '.response.cdi_devices[]?' /tmp/allocate)
    while read -r word; do allocated+=(--env "$word"); done < <(jq -r '.response.envs | to_entries[] | "\(.key)=\(.value)"' /tmp/allocate)
}
prestart() { kubelet-standin prestart --dir "$KUBELET" "$RESOURCE" "${devices[@]}"; }

as_before() { diff -u <(echo "$before") <(world); }

# ---- what the container says, in /tmp/seen -------------------------------------------------
# Of the container that is still running, whose id is in /tmp/seen.
said_the_same() {
    local id
    id=$(cat /tmp/seen) && within 60 shown "$id" && jq -e --slurpfile main /tmp/main '. == $main[0]' /tmp/shown
}
shown() { cri-pod output "$1" >/tmp/shown && jq -e .hcas /tmp/shown; }
sees_everything() { # what every sandbox of this pod gives its container
    check '... its variables name the VFs' seen --argjson ids "$(jq '.devices | sort' /tmp/allocate)" \
        '.env.PCIDEVICE_RAILHEAD_IO_ROCE | split(",") | sort == $ids'
    check '... its device nodes are rdma_cm and two uverbs, and no others' seen \
        '[.devices[].path | sub("[0-9]+$"; "")] == ["/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs", "/dev/infiniband/uverbs"]'
    check '... they are those of the node' numbers_are_the_nodes 3
    check '... it may open each of them' seen 'all(.devices[]; .character and .opens)'
    check '... it has eth0 and a VF on each rail, with their addresses' seen '.interfaces | keys == ["eth0", "lo", "rail0", "rail1"]
        and (.rail0[0] | startswith("10.100.0.")) and (.rail1[0] | startswith("10.200.0."))'
    check '... nccl.conf, rccl.conf and the topology file are those of its sandbox' files_are_the_sandboxs
    check '... and cannot be written' seen '[.files[] | (.text | length) > 0 and .writable == false] == [true, true, true]'
    check '... it bootstraps by eth0' seen '.ncclConf | index("NCCL_SOCKET_IFNAME==eth0")'
    check '... its HCAs belong to the rails' seen '[.hcas[].netdev] == ["rail0", "rail1"] and all(.hcas[]; .type == "RoCE v2")'
    check '... the GID index finds their addresses' gids_are_addresses 2
}

devices=() allocated=() sandbox=''
need 'PFs, VFs, a fabric, kubelet' node
need 'the container runtime' runtime_start bridge host-local
# Of another pod, before railheadd's container comes.
readonly VOLUME=/var/lib/kubelet/pods/another/volumes/v
mkdir -p "$VOLUME" && mount -t tmpfs volume "$VOLUME"
need 'the pod of the DaemonSet' daemonset_start 1
check '... has installed the CNI plugins' installed
check '... with which the runtime has a network' cri-pod --limit 60 ready
check '... and its list of system calls' cmp "$SRC/manifests/seccomp/railheadd.json" /var/lib/kubelet/seccomp/railhead/railheadd.json
check '... which is in force' grep -qz 'NoNewPrivs:.1.Seccomp:.2.Seccomp_filters:.1' "/proc/$(daemonset_pid)/status"
check '... and not the runtime'\''s' answers_enosys
check '... and the fabric' cmp "$CONFIG_MAPS/railhead-fabric/fabric.json" /etc/railhead/fabric.json
need '... offers the VFs' offered
check '... is ready' within 60 daemonset_ready 1
need 'Allocate' admit --uid "$POD_UID" "$RESOURCE" main=2
need '... of two VFs' is_given main
check 'kubelet has made the directory of the pod' test -d "/var/lib/kubelet/pods/$POD_UID"
check '... lets go of a volume that the host unmounts' sh -c "umount $VOLUME && ! grep $VOLUME /proc/$(daemonset_pid)/mountinfo"
before=$(world)

deny 'PreStartContainer before the sandbox is refused' prestart
check 'the sandbox, CNI ADD by the runtime' cri-pod sandbox "${pod[@]}"
sandbox=$(tail -n 1 /tmp/check.log)
check 'its address is the one of the cluster network' test "$(cri-pod address --sandbox "$sandbox")" = \
    "$(jq -r '.result.ips[0].address | split("/")[0]' /var/lib/cni/results/cluster-"$sandbox"-eth0)"
check 'PreStartContainer' prestart
check 'a container with the CDI names of Allocate' container main "${allocated[@]}"
sees_everything
echo '--- what it says:'
cat /tmp/seen
cp /tmp/seen /tmp/main

check 'a container of the same pod without them' container plain
check '... has no device nodes and no nccl.conf, but the interfaces' seen \
    '.devices == [] and .ncclConf == null and (.interfaces | has("rail0") and has("rail1"))'
check 'a CDI name in an annotation, as older kubelets pass it' container annotated \
    --annotation "cdi.k8s.io/railhead=railhead.io/nic=${devices[0]}"
check '... is the same, for that VF' seen '(.devices | length) == 2 and (.ncclConf | length) > 1'
deny 'a container with a CDI name that nobody wrote' container unknown --cdi railhead.io/nic=0000:00:00.0
check '... the error names it' grep -q 'unresolvable CDI devices railhead.io/nic=0000:00:00.0' /tmp/error

deny 'a container under a list of system calls that is not there' container unlisted --confined --seccomp /var/lib/kubelet/seccomp/none.json
check '... the error names it' grep -E '(cannot load seccomp profile|unable to load local profile) "[^"]*none.json' /tmp/error

check 'a container that stays' container staying --detach "${allocated[@]}" -- /show --stay
check '... has said the same by then' said_the_same
check '... matches its NCCL configuration' verified

older=$daemonset
# A node whose fabric has a key that the newer plugins no longer have: they would refuse each call, also DEL of this pod.
readonly FABRICS=("$CONFIG_MAPS/railhead-fabric/fabric.json" /etc/railhead/fabric.json)
outdated() {
    cp "${FABRICS[0]}" /tmp/fabric && jq '.health = { unreachable: true }' /tmp/fabric | tee "${FABRICS[@]}" >/dev/null &&
        printf older >>/opt/cni/bin/railhead
}
newer() { daemonset_start 2 >/tmp/newer 2>&1; }
names_the_key() { grep 'the present programs stay: .*/health/unreachable: is no longer a setting' /tmp/newer || { cat /tmp/newer; return 1; }; }
restored() { tee "${FABRICS[@]}" </tmp/fabric >/dev/null && cri-pod remove --sandbox "$daemonset"; }
check 'a fabric of an older version' outdated
deny '... keeps a newer image from starting' newer
check '... which names the key' names_the_key
check '... and leaves the plugins as they are' test "$(tail -c 5 /opt/cni/bin/railhead)" = older
check '... the pod that runs has what it had' verified
check '... and can be repaired' restored
check 'a newer image beside it' daemonset_start 2
check '... whose plugins are installed' installed
check '... is ready beside the older one' within 60 daemonset_ready 2
check 'the older one ends' cri-pod remove --sandbox "$older"
check '... and the newer one is still ready' within 60 daemonset_ready 2
check '... offers the VFs' offered
check 'the pod that runs has what it had' verified
check 'the end of the pod, CNI DEL by the runtime' cri-pod remove --sandbox "$sandbox"
check '... leaves the node as it was' as_before
check '... may come twice' cri-pod remove --sandbox "$sandbox"

# kubelet makes another sandbox for the same pod and does not call Allocate again.
check 'the next sandbox of the pod' cri-pod sandbox "${pod[@]}" --attempt 1
sandbox=$(tail -n 1 /tmp/check.log)
check 'PreStartContainer' prestart
check 'its container' container main "${allocated[@]}"
sees_everything
check 'the end of the pod' cri-pod remove --sandbox "$sandbox"

# Whether the runtime has read the specs of an ADD by the time of CreateContainer is a race, which
# PreStartContainer decides. The tried one has other specs to read, too.
attached_and_started() { # ATTEMPT
    sandbox=$(cri-pod sandbox "${pod[@]}" --attempt "$1" | tail -n 1) && [ -n "$sandbox" ] && prestart &&
        container main "${allocated[@]}" && cri-pod remove --sandbox "$sandbox"
}
attached_often() {
    local round
    for ((round = 2; round < 2 + attachments; round++)); do attached_and_started "$round" || { echo "round $round"; on_the_node; return 1; }; done
}
on_the_node() { # what railheadd could have seen
    grep -H . /run/railhead/locks/*
    cat /run/railhead/attachments/*/*
    tail -n 3 /run/railhead/attach.log
    tail -n 40 "$POD_LOGS"/railheadd-2/*.log
}
for number in {1..64}; do
    jq -n --arg number "$number" '{ cdiVersion: "0.5.0", kind: "example.com/other", devices: [ { name: $number, containerEdits: { env: ["N=1"] } } ] }' \
        >"/run/cdi/other-$number.json"
done
unread() { cat "$POD_LOGS"/railheadd-2/*.log | grep -c 'no container runtime read the CDI specs'; }
all_read() { [ "$(unread)" = "$unread_before" ] || { unread; return 1; }; }
unread_before=$(unread)
check "$attachments attachments, and no container is refused" attached_often
check '... railheadd saw each of them read' all_read
# The container runtime writes the log, in its own time.
said_of_each() { [ "$(cat "$POD_LOGS"/railheadd-2/*.log | grep -c '"answered","call":"PreStartContainer"')" -ge "$attachments" ]; }
check '... and said so of each' within 60 said_of_each
rm /run/cdi/other-*.json

# On the node's own network no ADD is called, so there is nothing that CDI could inject.
check 'the sandbox of a pod on the node'\''s network' cri-pod sandbox "${pod[@]}" --attempt $((attachments + 2)) --host-network
sandbox=$(tail -n 1 /tmp/check.log)
deny 'PreStartContainer refuses it' prestart
deny '... and so does the runtime' container main --host-network "${allocated[@]}"
check '... for CDI names that nobody defined' grep -q 'unresolvable CDI devices' /tmp/error
check 'the end of the pod' cri-pod remove --sandbox "$sandbox"

# ---- a pod with hostUsers: false -----------------------------------------------------------
# Whatever power over networks it has is over its own: nsenter gives more than any container.
container_runs() { # sets inside
    local process
    for process in /proc/[0-9]*; do
        [ "$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null)" != '/show --stay ' ] || { inside=${process#/proc/} && return; }
    done
    return 1
}
# Busybox has a program of that name, too.
in_pod() { nsenter --target "$inside" --user --net "$(type -P "$1")" "${@:2}"; }
in_hosts_users() { nsenter --target "$inside" --net "$(type -P "$1")" "${@:2}"; }
its_ids_are_others() { awk '{ print; exit !($1 == 0 && $2 > 0) }' "/proc/$inside/uid_map"; }
idle_vf() { # sets idle
    local vfs=(/sys/class/net/pf?/device/virtfn?/net/*)
    [ -e "${vfs[0]}" ] && idle=${vfs[0]##*/}
}
stacks() { "$1" ip link add link "$idle" link-netnsid 0 name hidden type ipvlan mode l2 2>/tmp/said || { cat /tmp/said; return 1; }; }
reaches_no_link() { ! stacks in_pod && grep 'Permission denied' /tmp/said; }

check 'the sandbox of a pod with hostUsers: false' cri-pod sandbox "${pod[@]}" --attempt $((attachments + 3)) --no-host-users
sandbox=$(tail -n 1 /tmp/check.log)
check 'PreStartContainer' prestart
check 'its container' container main --no-host-users "${allocated[@]}"
sees_everything
check 'one that stays, with CAP_NET_ADMIN' container staying --no-host-users --detach --confined --capability NET_ADMIN "${allocated[@]}" -- /show --stay
check '... runs' within 60 container_runs
check '... in a user namespace of its own' its_ids_are_others
check '... matches its NCCL configuration' verified
check '... may stack interfaces on its VF' in_pod ip link add link rail0 name mine type macvlan
need '... the host has an idle VF' idle_vf
check '... which it does not reach' reaches_no_link
check '... but who has the host'\''s user namespace does' stacks in_hosts_users
check 'the end of the pod' cri-pod remove --sandbox "$sandbox"
check '... leaves the node as it was' as_before

# ---- several containers --------------------------------------------------------------------
# What the init container had, the others are given: kubelet does so.
pod=(--name several --uid "$SEVERAL_UID" --log-directory "$POD_LOGS/several")
containers=(setup main beside)
shared_as_kubelet_does() {
    jq -e --arg resource "$RESOURCE" '[.beside, .main, .setup | .[$resource].devices] as [$beside, $main, $setup]
        | ($main | length == 1) and ($beside | length == 1) and ($main + $beside | sort) == ($setup | sort)' /tmp/admitted
}
prestart_of() { is_given "$1" && prestart; }        # CONTAINER
prestart_refuses() { is_given "$1" && ! prestart; } # CONTAINER
starts() { # CONTAINER [OPTION...]
    check "PreStartContainer of $1" prestart_of "$1"
    check '... the container' container "$1" "${allocated[@]}" "${@:2}"
}
of_the_same_files() { files_are_the_sandboxs && seen --slurpfile first /tmp/first '.files == $first[0].files'; }
sees_its_device() {
    check '... its files are those of the first container, byte by byte' of_the_same_files
    check '... each names both VFs' seen '[.files[].text | [scan("rxe_[a-z0-9]+")] | unique | length] == [2, 2, 2]'
    check '... of device nodes it has rdma_cm and one uverbs' seen \
        '[.devices[].path | sub("[0-9]+$"; "")] == ["/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs"]'
    check '... which it may open' seen 'all(.devices[]; .opens)'
    check '... its variable names its VF' seen --arg id "${devices[0]}" '.env.PCIDEVICE_RAILHEAD_IO_ROCE == $id'
}
of_the_stayer() { cri-pod output "$stayer" >/tmp/seen && jq -e .hcas /tmp/seen; }

check 'Allocate for an init container and two others' admit --uid "$SEVERAL_UID" --init setup "$RESOURCE" setup=2 main=1 beside=1
check '... which get what the init container had' shared_as_kubelet_does
for name in "${containers[@]}"; do check "PreStartContainer of $name is refused before the sandbox" prestart_refuses "$name"; done
check 'the sandbox' cri-pod sandbox "${pod[@]}"
sandbox=$(tail -n 1 /tmp/check.log)
starts setup
cp /tmp/seen /tmp/first
sees_everything
starts main --detach -- /show --stay
stayer=$(cat /tmp/seen)
check '... stays' within 60 of_the_stayer
sees_its_device
starts beside
sees_its_device
check 'the one that stayed ends' cri-pod stop "$stayer"
starts main --restarts 1
sees_its_device
check 'the end of the pod' cri-pod remove --sandbox "$sandbox"
for name in "${containers[@]}"; do check "PreStartContainer of $name is refused without a sandbox" prestart_refuses "$name"; done

check 'all is as it was before the first pod' as_before
check 'the pod of the DaemonSet ends' cri-pod remove --sandbox "$daemonset"
runtime_stop
finish
