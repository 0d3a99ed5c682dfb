#!/bin/bash
# crio_calls.sh - the plugin called as CRI-O calls it, and its CDI specs read as CRI-O reads them, over stand-ins for VFs.
#
# usage: tests/system/cri/crio_calls.sh BIN [PLANTED]
#   BIN      the release programs
#   PLANTED  netns, capabilities or cdi: a plugin that makes this mistake; the script then has to find it
# Needs root. All happens in network and mount namespaces of its own, below a tmpfs.
# exit status: 0 all is well; 1 a failure; 2 could not be run.
#
# What CRI-O does is from its sources, commit f954a17e505f:
#   CNI_ARGS, capability arguments   vendor/github.com/cri-o/ocicni/pkg/ocicni/ocicni.go, buildCNIRuntimeConf;
#                                    server/sandbox_network.go (cgroupPath and the pod's annotations, always)
#   runtimeConfig, prevResult of the cache, STATUS, GC
#                                    vendor/github.com/containernetworking/cni/libcni/api.go, injectRuntimeConfig,
#                                    DelNetworkList, GetStatusNetworkList, GCNetworkList
#   CHECK for a sandbox's addresses  ocicni.go, checkNetwork
#   rules of CDI specs               vendor/tags.cncf.io/container-device-interface 1.1.0, pkg/parser/parser.go,
#                                    pkg/cdi/spec-dirs.go, specs-go/version.go
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
die() { echo "crio_calls.sh: $*" >&2; exit 2; }
[ $# -ge 1 ] || { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 2; }
new=$(cd "$1" && pwd) || die "there is no $1"
planted=${2:-}
if [ -z "${RAILHEAD_CRIO_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || die "network namespaces need root"
    RAILHEAD_CRIO_INSIDE=1 exec unshare --net --mount --propagation private "$0" "$new" ${planted:+"$planted"}
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-crio.XXXXXX")
mount -t tmpfs -o size=256m tmpfs "$work" || die "no tmpfs"
mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns || die "no tmpfs"
trap 'stop_node; umount "$work" && rmdir "$work"' EXIT
# shellcheck source=tests/system/skew/node.sh
. "$here/../skew/node.sh"

failures=0
check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/said" 2>&1; then echo "ok    $what"; else
        failures=$((failures + 1))
        echo "FAIL  $what: $(tail -n 4 "$work/said" | tr '\n' ' ')"
    fi
}

# ---- the calls --------------------------------------------------------------------------
declare -A id=([early]=$(printf 'e%.0s' {1..64}) [late]=$(printf '1%.0s' {1..64}))
# The plugin declares capabilities, so libcni gives it what the runtime has of them, and others it has not heard of.
plugin='{"type": "railhead", "linkTimeoutSeconds": 60, "previousDelTimeoutSeconds": 5, "conflictProbeMs": 0, "announce": false,
    "ncclConfig": "off", "capabilities": {"deviceID": true, "cgroupPath": true, "io.kubernetes.cri.pod-annotations": true}}'
plugin_program() {
    case $planted in
        netns) # fails where the namespace's file is gone
            # shellcheck disable=SC2016 # of the planted plugin
            printf '#!/bin/sh\n[ "$CNI_COMMAND" != DEL ] || [ -e "$CNI_NETNS" ] || exit 1\nexec %s/railhead\n' "$new" ;;
        capabilities) # refuses capabilities that it does not know
            # shellcheck disable=SC2016 # of the planted plugin
            printf '#!/bin/sh\nconfig=$(cat); case $config in *cgroupPath*runtimeConfig*cgroupPath*) exit 1;; esac\nprintf %%s "$config" | %s/railhead\n' "$new" ;;
        *) printf '#!/bin/sh\nexec %s/railhead\n' "$new" ;;
    esac >"$work/bin/railhead"
    chmod +x "$work/bin/railhead"
}
call() { # COMMAND KIND, the configuration on stdin
    local arguments="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=$2;K8S_POD_INFRA_CONTAINER_ID=${id[$2]};K8S_POD_UID=${uid[$2]}"
    # CRI-O's own environment is passed on.
    env RAILHEAD_ROOT="$root" CNI_COMMAND="$1" CNI_PATH="$work/bin" CNI_CONTAINERID="${id[$2]}" CNI_NETNS="/var/run/netns/$2" \
        CNI_IFNAME=eth0 CNI_ARGS="$arguments" "$work/bin/railhead"
}
without_attachment() { # COMMAND: STATUS and GC name none
    env RAILHEAD_ROOT="$root" CNI_COMMAND="$1" CNI_PATH="$work/bin" CNI_CONTAINERID='' CNI_NETNS='' CNI_IFNAME='' CNI_ARGS='' "$work/bin/railhead"
}
config() { jq '. + {name: "cluster", cniVersion: "1.1.0"} + $ARGS.named' "$@" <<<"$plugin"; }
runtime_config() {
    config --argjson runtimeConfig '{"cgroupPath": "/kubepods.slice", "io.kubernetes.cri.pod-annotations": {"a/b": "c"}}' "$@"
}
cluster_network() { # KIND: what the plugin before it in the list answers
    jq -n --arg kind "$1" '{cniVersion: "1.1.0", ips: [{interface: 0, address: "10.244.0.7/24"}],
        interfaces: [{name: "eth0", mac: "02:00:00:00:00:aa", sandbox: "/var/run/netns/\($kind)"}]}'
}
sandbox() { # KIND: ADD, and CHECK, since CRI-O asks for the addresses
    ip -n "$1" link add eth0 address 02:00:00:00:00:aa type veth peer name eth1 && ip -n "$1" link set eth0 up &&
        ip -n "$1" address add 10.244.0.7/24 dev eth0 &&
        runtime_config --argjson prevResult "$(cluster_network "$1")" | call ADD "$1" >"$work/cached-$1" || { cat "$work/cached-$1"; return 1; }
    runtime_config --argjson prevResult "$(cat "$work/cached-$1")" | call CHECK "$1"
}
# end KIND: DEL with the cached result. Without a cache, or with an empty result, where it is gone.
end() { runtime_config --argjson prevResult "$(cat "$work/cached-$1")" | call DEL "$1"; }
end_uncached() { runtime_config | call DEL "$1"; }
end_empty() { runtime_config --argjson prevResult '{"cniVersion": "1.1.0"}' | call DEL "$1"; }
gc() { # KIND...: those are valid. libcni injects both names of the key.
    local valid
    valid=$(for kind in "$@"; do jq -n --arg id "${id[$kind]}" '{containerID: $id, ifname: "eth0"}'; done | jq -s .)
    config --argjson cni.dev/valid-attachments "$valid" --argjson cni.dev/attachments "$valid" | without_attachment GC
}
is_attached() { railctl "$new" journal list -o json | grep "${id[$1]}" >/dev/null; }
is_gone() { ! is_attached "$1"; }

# ---- CDI ----------------------------------------------------------------------------------
# The last character of the names of vendors and classes is not looked at by the library; here it is.
readonly SPECS='.kind as $kind | ($kind | split("/")) as [$vendor, $class] | select(
    (.cdiVersion | IN("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"))
    and ($kind | split("/") | length == 2) and all($vendor, $class; test("^[A-Za-z][A-Za-z0-9_.-]*$"))
    and (.devices | length > 0) and ([.devices[].name] | length == (unique | length))
    and all(.devices[]; (.name | test("^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$")) and (.containerEdits | length > 0))
    and all(.devices[].containerEdits.env[]?; test("^[^=]+="))) | .devices[].name'
read_specs() { # of both directories
    local directory file found=0
    for directory in "$root/etc/cdi" "$root/run/cdi"; do
        for file in "$directory"/*; do
            [ -e "$file" ] || continue
            case $file in *.json | *.yaml) ;; *) echo "CRI-O does not read $file"; return 1 ;; esac
            [ "$planted" != cdi ] || sed -i 's/"name": *"/&-/' "$file"
            jq -e "$SPECS" "$file" || { echo "CRI-O refuses $file:"; cat "$file"; return 1; }
            found=$((found + 1))
        done
    done
    [ $found -gt 0 ] || { echo "there are none"; return 1; }
}

node() {
    fresh_node
    mkdir -p "$work/bin" && plugin_program && ln -sf "$new/railhead-ipam" "$work/bin/" && start_daemon "$new"
}
# The kernel gives a NIC back to the node, with the name that it had. A stand-in would be gone with the namespace.
namespace_goes() { # KIND
    local name
    for name in $(ip -n "$1" -j link show | jq -r '.[].ifname | select(test("^(lo$|eth)") | not)'); do
        ip -n "$1" link set "$name" netns $$ || return
    done
    ip netns del "$1"
}
reboot() {
    stop_daemon
    rm -rf "${root:?}"/run/*
    [ ! -e /run/netns/early ] || namespace_goes early
    namespace_goes late
}
check 'a node' node
check 'STATUS' without_attachment STATUS < <(config)
for kind in early late; do
    check "$kind: Allocate" allocate "$kind"
    check "$kind: ADD and CHECK" sandbox "$kind"
    check "$kind: ... it is attached" is_attached "$kind"
done
check 'its CDI specs' read_specs
check 'GC of both' gc early late
check '... leaves one' is_attached early
check '... and the other' is_attached late
check 'GC of one' gc early
check '... leaves it' is_attached early
check '... and not the other' is_gone late
check 'DEL' end early
check '... repeated' end early
check '... repeated without a cache' end_uncached early
check '... after the namespace is gone' namespace_goes early
check '... DEL' end early
check '... leaves nothing' is_gone early
check 'late: DEL after GC' end late

check 'the node' node
for kind in early late; do check "$kind: the next pod" allocate "$kind" && check '... ADD' sandbox "$kind"; done
check 'the namespace goes' namespace_goes early
check '... DEL' end early
check '... leaves nothing' is_gone early
check 'the node boots' reboot
check '... DEL with an empty result' end_empty late
check '... DEL without a cache' end_uncached late
check '... DEL with the cached result' end late
check '... GC' gc
check '... leaves nothing' is_gone late
[ -z "$planted" ] || { [ $failures -gt 0 ] || { echo "the planted mistake is not found"; exit 1; }; exit 0; }
[ $failures = 0 ]
