#!/bin/bash
# run.sh - the manifests in a real cluster: kube-apiserver, controllers and scheduler on this machine, kubelet and
# containerd in a guest with SR-IOV NICs, the DaemonSet from the image, pods chained and by Multus.
#
# usage: run.sh DIR [-a | -q | -2] [-r DIR] [-o DIR]
#   DIR      has Kubernetes' kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kubectl, all static
#            or of this machine's libraries (kubelet: static); etcd, if this machine has none; multus, if pods are to get
#            NICs by it, too; and helm 4, if the chart is to be installed
#   -a       admission and chart alone: what needs the control plane and no node
#   -q       the commands of docs/start/quick-start.md alone
#   -2       the same on two nodes, which claim their indices
#   -r DIR   another runtime than Debian's containerd (tests/system/cri/run.sh)
#   -o DIR   keep logs and the guests' job directories there
# No test of ctest's: Debian has none of these programs. Wants root, and a build tree (tests/setup.sh --build; and the
# targets of tests/system/cri: tests/run.sh -N). All of it is in a network and a process namespace of its own, and ends with it.
# exit status: 0; 1 when a check failed; 125 when it could not begin.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 125; }
[ -d "${1:-}" ] || usage
BIN=$(cd "$1" && pwd)
out=''
alone=''
runtime=''
shift
while getopts aq2r:o: flag; do
    case $flag in
        r) runtime=$OPTARG ;;
        a | q | 2) alone=-$flag ;;
        o) out=$OPTARG ;;
        *) usage ;;
    esac
done
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do
    [ -x "$BIN/$program" ] || { echo "run.sh: there is no $BIN/$program" >&2; exit 125; }
done
PATH=$BIN:$PATH command -v etcd >/dev/null || { echo "run.sh: there is no $BIN/etcd" >&2; exit 125; }
if [ -z "${RAILHEAD_CLUSTER_INSIDE:-}" ]; then
    # What wants the network, if it is not there yet.
    "$repo/tests/support/vm/build-guest.sh" >/dev/null && "$repo/tests/system/manifests/tools.sh" >/dev/null || exit 125
    RAILHEAD_CLUSTER_INSIDE=$(mktemp -d "${TMPDIR:-/tmp}/railhead-cluster.XXXXXX") || exit 125
    export RAILHEAD_CLUSTER_INSIDE
    inside=''
    # unshare takes no SIGTERM, and no more does the first process of a pid namespace.
    trap 'kill -KILL "$inside" 2>/dev/null; wait; rm -rf "$RAILHEAD_CLUSTER_INSIDE"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    mkdir "$RAILHEAD_CLUSTER_INSIDE/node" &&
        "$repo/manifests/image/build.py" --tools --out "$RAILHEAD_CLUSTER_INSIDE/node/tools.tar" >/dev/null || exit 125
    unshare --net --pid --fork --kill-child --mount-proc "$0" "$BIN" $alone ${runtime:+-r "$runtime"} ${out:+-o "$out"} &
    inside=$!
    wait "$inside"
    exit
fi

readonly work=$RAILHEAD_CLUSTER_INSIDE
readonly LOGS=${out:-$work/logs} LIMIT=900
nodes=(0) guests=()
[ "$alone" != -2 ] || nodes=(0 1)
mkdir -p "$LOGS" "$work"/{sync0,sync1,pki}
# shellcheck source=tests/support/vm/lib.sh
. "$repo/tests/support/vm/lib.sh"
check_log=$work/check.log
# shellcheck source=tests/system/cluster/control_plane.sh
. "$here/control_plane.sh"
# shellcheck source=tests/system/cluster/admission.sh
. "$here/admission.sh"
# shellcheck source=tests/system/cluster/helm.sh
. "$here/helm.sh"
# shellcheck source=tests/system/cluster/quick_start.sh
. "$here/quick_start.sh"

# ---- the nodes -----------------------------------------------------------------------------
nodes_start() {
    local number wire=()
    cp "$BIN/kubelet" "$work/pki/ca.crt" "$work"/pki/node?.{crt,key} "$work"/node*.kubeconfig "$work/node/" || return
    [ ! -x "$BIN/multus" ] || cp "$BIN/multus" "$work/node/" || return
    for number in "${nodes[@]}"; do
        [ ${#nodes[@]} = 1 ] || wire=(-w "dgram,local.type=unix,local.path=$work/w$number,remote.type=unix,remote.path=$work/w$((1 - number))")
        "$repo/tests/system/cri/run.sh" -b "$repo/build/release" -D 2 -i "$number" "${wire[@]}" ${runtime:+-r "$runtime"} -s "node=$work/node" -S "$work/sync$number" \
            -m 2040 -t 7000 -T "$here/nat.sh" -o "$LOGS/node$number" "$here/node_guest.sh" ${#nodes[@]} >"$LOGS/node$number.log" 2>&1 &
        guests+=($!)
    done
    within 600 nodes_known_or_one_over && nodes_known || { tail -n 5 "$LOGS"/node?.log; return 1; }
}
nodes_known() { kubectl get node "${nodes[@]/#/node}"; }
nodes_known_or_one_over() {
    local guest
    for guest in "${guests[@]}"; do kill -0 "$guest" || return 0; done
    nodes_known
}
# on N COMMAND: in the guest of node N, by its loop over orders (node_guest.sh); its output and its status.
on() {
    local sync=$work/sync$1 name=$BASHPID-$EPOCHREALTIME answer
    printf '%s\n' "${*:2}" >"$sync/.order" && mv "$sync/.order" "$sync/order-$name"
    within 120 test -e "$sync/answer-$name" || { echo "node $1 does not answer"; return 1; }
    answer=$(<"$sync/answer-$name")
    sed '$d' <<<"$answer"
    return "${answer##*$'\n'}"
}
node() { on 0 "$@"; }
each_node() {
    local number
    for number in "${nodes[@]}"; do on "$number" "$@" || return; done
}
nodes_end() {
    local number
    for number in "${nodes[@]}"; do echo end >"$work/sync$number/order-end"; done
    for number in "${nodes[@]}"; do check 'a node goes' wait "${guests[number]}"; done
    finish
}

# ---- what the cluster shows ----------------------------------------------------------------
# offers N [RESOURCE]: each node does.
offers() { kubectl get nodes -o json | jq -e --arg count "$1" --arg resource "${2:-railhead.io/roce}" 'all(.items[]; .status.allocatable[$resource] == $count)'; }
# rails_ready STATUS: the condition, and the taint that is there without it.
rails_ready() {
    kubectl get node node0 -o json | jq -e --arg status "$1" '(.status.conditions[] | select(.type == "RailsReady") | .status) == $status
        and any(.spec.taints[]?; .key == "railhead.io/rails-not-ready") == ($status == "False")'
}
event() { kubectl get events -A -o json | jq -e --arg reason "$1" 'any(.items[]; .reason == $reason)'; }
claimed() { kubectl get nodeindices -o json | jq -e '[.items[].spec.node] == ["node0"]'; }
# pod NAME NETWORKS [VFS [GPUS [HOST-USERS]]]: two VFs; by Multus, if there are networks.
pod() {
    jq -n --arg name "$1" --arg networks "$2" --argjson vfs "${3:-2}" --argjson gpus "${4:-0}" --argjson users "${5:-true}" '{ apiVersion: "v1", kind: "Pod",
        metadata: { name: $name, annotations: (if $networks == "" then {} else { "k8s.v1.cni.cncf.io/networks": $networks } end) },
        spec: { restartPolicy: "Never", terminationGracePeriodSeconds: 1, dnsPolicy: "Default", hostUsers: $users, containers: [ { name: "main", image: "railhead.test/show:1",
            command: ["/show", "--stay"], securityContext: { capabilities: { add: ["IPC_LOCK"] } },
            resources: { limits: { "railhead.io/roce": $vfs, "example.com/gpu": $gpus } } } ] } }' |
        kubectl apply -f - && kubectl wait --for=condition=Ready "pod/$1" --timeout="${LIMIT}s"
}
says() { kubectl logs "$1" | jq -e "$2"; } # POD FILTER: what the container shows of itself
# interfaces: the addresses of POD's NICs, one line.
addresses() { kubectl logs "$1" | jq -r '.interfaces | del(.lo, .eth0) | to_entries | map(.value[0]) | join(" ")'; }
user_namespaces() { kubectl get node node0 -o json | jq -e 'any(.status.runtimeHandlers[]?; .features.userNamespaces)' >/dev/null; }
# shellcheck disable=SC2016 # expanded there
readonly IDS_OF_ITS_OWN='awk "{ print } \$2 == 0 { shared = 1 } END { exit shared || !NR }" $(grep -lxz -e "-[-]stay" /proc/[0-9]*/cmdline 2>/dev/null | sed "s/cmdline/uid_map/") /dev/null'
follows() { # "A B" "C D": each the next address of the node's part, .1 to .63; after the last comes the first
    local first=() second=() i
    read -ra first <<<"$1" && read -ra second <<<"$2" && [ ${#first[@]} = 2 ] && [ ${#second[@]} = 2 ] || return
    echo "$1, then $2"
    for i in 0 1; do
        [ "${first[i]%.*}.$((${first[i]##*.} % 63 + 1))" = "${second[i]}" ] || return
    done
}
# beside POD: its VF is on the switch of the GPU that kubelet gave it, by the buses of topology "rail".
beside() {
    kubectl logs "$1" | jq -e '.env | { gpu: .PCIDEVICE_EXAMPLE_COM_GPU[5:7], vf: .PCIDEVICE_RAILHEAD_IO_ROCE[5:7] }
        | . == { gpu: "44", vf: "43" } or . == { gpu: "84", vf: "83" }'
}
gone() { kubectl delete pod "$1" --timeout="${LIMIT}s"; }
# shellcheck disable=SC2016 # expanded there
all_restored() { node '[ -z "$(find /run/railhead/attachments /run/railhead/locks /run/cdi -mindepth 1 ! -type d ! \( -name "*.lock" -empty \))" ] &&
    [ "$(cat /sys/class/net/pf?/device/sriov_numvfs | sort -u)" = 2 ] && [ "$(ls -d /sys/class/net/pf?/device/virtfn?/net/* | wc -l)" = 4 ]'; }
rolled_out() { kubectl -n railhead rollout status daemonset railheadd --timeout="${LIMIT}s"; }
registrations() { kubectl -n railhead logs daemonset/railheadd -c railheadd | grep -c '"registered with kubelet"'; }
registered_times() { [ "$(registrations)" = "$1" ]; }
restarted() { kubectl -n railhead get pods -o json | jq -e 'any(.items[].status.containerStatuses[]?; .restartCount == 1 and .ready)'; }
# plugin: `kubectl railhead` as kubectl finds it.
plugin() { PATH=$BIN:$repo/manifests:$PATH "$BIN/kubectl" railhead --timeout 300 "$@"; }
railhead_pod() { kubectl -n railhead exec daemonset/railheadd -c railheadd -- "$@"; }
# watch_offer, offer_was N: nothing else in between.
watch_offer() {
    while :; do kubectl get node node0 -o jsonpath='{.status.allocatable.railhead\.io/roce}{"\n"}'; done >"$work/offers" &
    watcher=$!
}
offer_was() {
    kill "$watcher" && { wait "$watcher"; } 2>/dev/null
    sort "$work/offers" | uniq -c
    [ "$(sort -u "$work/offers")" = "$1" ] && [ "$(wc -l <"$work/offers")" -gt 10 ]
}
# another_image: sets release. Three attempts, since kubelet may report its status in the moment without a registration that
# docs/design/unproven.md describes; what is wrong is wrong every time.
another_image() {
    for release in 2 1 2; do
        watch_offer
        overlay "$release" early node-index node-conditions && apply && rolled_out || { kill "$watcher"; return 1; }
        offer_was 4 && return
    done
    return 1
}

# ---- what is installed ---------------------------------------------------------------------
overlay() { # RELEASE early|late [COMPONENT...]
    local into=$work/manifests/overlays/cluster release=$1 binding=$2
    shift 2
    rm -rf "$work/manifests" && cp -r "$repo/manifests" "$work/manifests" && mkdir "$into" || return
    jq -n --arg release "$release" '{ resources: ["../../base"], components: ($ARGS.positional | map("../../components/" + .)),
        configMapGenerator: [ { name: "railhead-fabric", namespace: "railhead", behavior: "replace",
                                  files: ["fabric.json", "topology.json"], options: { disableNameSuffixHash: true } } ],
        images: [ { name: "railhead", newName: "railhead.test/railhead", newTag: $release } ] }' --args "$@" >"$into/kustomization.yaml"
    # No emulated GPU has a class that is known for one.
    echo '{ "accelerators": { "vendors": ["1234:0380"] } }' >"$into/topology.json"
    jq -n --arg binding "$binding" '{ version: 1, pools: [ { resource: "railhead.io/roce", binding: $binding } ],
        addresses: { conflictProbeMs: 50, reuseDelaySeconds: 0, index: { from: "kubernetes" } },
        provision: { vfs: 2 }, nodeStatus: { nodeCondition: true, taint: { whenRailsBelow: 2 }, events: true },
        rails: [ range(2) | { name: "rail\(.)", pf: "pf\(.)", vlan: (100 + .), softRoce: true, subnet: "10.20\(.).0.0/16",
                              gateway: "10.20\(.).255.254", routes: ["10.200.0.0/13"], nodeBlock: 26 } ] }' >"$into/fabric.json"
}
apply() { kubectl apply -k "$work/manifests/overlays/cluster"; }
apply_gone() { kubectl delete -k "$work/manifests/overlays/cluster" --timeout="${LIMIT}s"; }
accepted() { kubectl kustomize "$1" | kubectl apply --dry-run=server --validate=strict -f -; }
# What Multus and prometheus-operator bring along, as far as an API server needs it.
foreign_kinds() {
    local group plural kind version
    while read -r group plural kind version; do
        jq -n --arg group "$group" --arg plural "$plural" --arg kind "$kind" --arg version "$version" '{ apiVersion: "apiextensions.k8s.io/v1",
            kind: "CustomResourceDefinition", metadata: { name: "\($plural).\($group)" }, spec: { group: $group, scope: "Namespaced",
            names: { plural: $plural, singular: ($kind | ascii_downcase), kind: $kind }, versions: [ { name: $version, served: true, storage: true,
                schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } } ] } }' | kubectl apply -f - || return
    done <<'END'
k8s.cni.cncf.io network-attachment-definitions NetworkAttachmentDefinition v1
monitoring.coreos.com podmonitors PodMonitor v1
monitoring.coreos.com prometheusrules PrometheusRule v1
monitoring.coreos.com alertmanagerconfigs AlertmanagerConfig v1alpha1
END
}

need() {
    local before=$failures
    check "$@"
    [ "$failures" = "$before" ] || { tail -n 20 "$LOGS"/*.log; finish; }
}
need 'certificates, etcd, Kubernetes'\''s control plane' control_plane_start
check '... knows the kinds of Multus and prometheus-operator' foreign_kinds
if [[ $alone != -[q2] ]]; then
    # A dry run makes no namespace for the objects after it.
    need '... takes the namespace' kubectl apply -f "$repo/manifests/base/namespace.yaml"
    for path in "$repo"/manifests/overlays/*/; do check "... takes all of overlays/$(basename "$path")" within 30 accepted "$path"; done
    admission_checks
    [ ! -x "$BIN/helm" ] || helm_checks
fi
[ "$alone" != -a ] || finish

need "nodes with two PFs, kubelet and containerd: ${#nodes[@]}" nodes_start
if [ -n "$alone" ]; then
    [ ! -x "$BIN/multus" ] || need 'Multus' each_node use_multus
    quick_start_checks
    nodes_end
fi
need 'kubectl apply' overlay 1 early node-index node-conditions
check '...' apply
check '... and the node'\''s label' kubectl label node node0 railhead.io/nics=true
check 'the DaemonSet is rolled out' rolled_out
check '... has made the VFs, and offers them' within "$LIMIT" offers 4
check '... has claimed its index' within "$LIMIT" claimed
check '... has reported that the rails are healthy' within "$LIMIT" rails_ready True
check '... shows the topology' railhead_pod railctl topology

check 'a pod, chained behind the cluster network' pod first ''
check '... has a VF of each rail' says first '.interfaces | keys == ["eth0", "lo", "rail0", "rail1"]'
check '... has their device nodes, and opens them' says first '(.devices | length) == 3 and all(.devices[]; .opens)'
check '... has nccl.conf' says first '.ncclConf | any(startswith("NCCL_IB_HCA=="))'
check '... matches its NCCL configuration' railhead_pod railctl nccl verify

check 'a newer image is rolled out, and the node never offers less' another_image
check '... the pod matches its NCCL configuration' railhead_pod railctl nccl verify

so_far=$(registrations)
check 'kubelet ends and comes again' node kubelet_end
check '... railheadd registers with it' within "$LIMIT" registered_times $((so_far + 1))
check '... the node offers its VFs' within "$LIMIT" offers 4
check '... the pod runs' kubectl wait --for=condition=Ready pod/first --timeout="${LIMIT}s"
check 'railheadd is killed' node railheadd_dies
check '... comes again' within "$LIMIT" restarted
check '... the node offers its VFs' within "$LIMIT" offers 4

check 'the cable of rail1 is cut' node 'cable w1 out'
check '... the node'\''s condition and taint tell' within "$LIMIT" rails_ready False
check '... as does an event' within "$LIMIT" event RailDeviceUnhealthy
check '... and it offers one rail' within "$LIMIT" offers 2
check 'it is in again' node 'cable w1 in'
check '... and all is well' within "$LIMIT" rails_ready True
check '... on offer, too' within "$LIMIT" offers 4

check 'kubectl railhead drain takes rail1 out' plugin drain rail1 --reason 'a "bad" cable'
check '... the node offers one rail' within "$LIMIT" offers 2
check '... it says why' eval 'plugin drain | grep "^node0 .*a \"bad\" cable"'
check '... undrain returns it' within "$LIMIT" plugin undrain rail1
check '... on offer, too' within "$LIMIT" offers 4

before=$(addresses first)
check 'the pod ends' gone first
check '... and leaves nothing' within "$LIMIT" all_restored
check 'the next one' pod second ''
check '... has the next addresses' follows "$before" "$(addresses second)"
check '... ends' gone second

if user_namespaces; then
    check 'a pod with hostUsers: false' pod own '' 2 0 false
    check '... runs with ids of its own' node "$IDS_OF_ITS_OWN"
    check '... has a VF of each rail' says own '.interfaces | keys == ["eth0", "lo", "rail0", "rail1"]'
    check '... has their device nodes, and opens them' says own '(.devices | length) == 3 and all(.devices[]; .opens)'
    check '... has nccl.conf' says own '.ncclConf | any(startswith("NCCL_IB_HCA=="))'
    check '... matches its NCCL configuration' railhead_pod railctl nccl verify
    check '... ends' gone own
    check '... and leaves nothing' within "$LIMIT" all_restored
else
    echo 'skip  a pod with hostUsers: false: this runtime has no user namespaces'
fi

if [ -x "$BIN/multus" ]; then
    check 'Multus' node 'use_multus'
    check '... with the networks of components/networks' overlay "$release" early node-index node-conditions networks
    check '... applied' apply
    check 'a pod that names one network twice' pod third 'roce,roce'
    check '... has a VF of each rail' says third '.interfaces | keys == ["eth0", "lo", "net1", "net2"]'
    check '... by Multus'\''s events' within 30 event AddedInterface
    check '... and its status, with the devices' sh -c "kubectl get pod third -o json | jq -e '.metadata.annotations[\"k8s.v1.cni.cncf.io/network-status\"]
        | fromjson | map(.\"device-info\".pci.\"pci-address\" // empty) | length == 2'"
    check '... ends' gone third
    check 'a pod with all of its devices in one network' pod fourth 'roce-all'
    check '... has a VF of each rail' says fourth '.interfaces | keys == ["eth0", "lo", "rail0", "rail1"]'
    check '... ends' gone fourth
    check '... and leaves nothing' within "$LIMIT" all_restored
fi

check 'a device plugin of GPUs' node gpu_plugin
check '... offers both' within "$LIMIT" offers 2 example.com/gpu
check 'late binding' overlay "$release" late node-index node-conditions networks
check '... applied' apply
# kubelet updates the mounted file within some 90 seconds.
check '... is in force, without a rollout' within "$LIMIT" node 'grep -q late /etc/railhead/fabric.json'
check '... offers as many' within "$LIMIT" offers 4
networks=
[ ! -x "$BIN/multus" ] || networks=roce
for name in fifth sixth; do
    check 'a pod with one GPU' pod $name "$networks" 1 1
    check '... has a VF beside it' beside $name
done
for name in fifth sixth; do check '... ends' gone $name; done
check '... and leaves nothing' within "$LIMIT" all_restored

check 'kubectl delete' apply_gone
check '... the node offers nothing' within "$LIMIT" offers 0
check '... and its VFs are on the host' all_restored
quick_start_checks
nodes_end
