# shellcheck shell=bash disable=SC2154 # sourced by run.sh, whose variables it uses
# helm.sh - the chart by Helm against a real API server, for run.sh.
#
#   helm_checks           without nodes: Helm waits for none, and the Job before `helm uninstall` is left out; leaves nothing
#   helm_running_checks   the quick start's release, while its pods have NICs; leaves it as it was
#   helm_suggest_checks   "Let it be suggested" of docs/reference/fabric.md, on nodes without a fabric; leaves what helm uninstall leaves
helm() { "$BIN/helm" "$@"; }
# release install|upgrade NAMESPACE [OPTION...]
release() {
    helm "$1" railhead "$repo/manifests/helm/railhead" -n "$2" -f "$repo/manifests/helm/railhead/examples/node-index.yaml" "${@:3}"
}
removed() { helm uninstall railhead -n "$1" --no-hooks; } # NAMESPACE
kind_kept() { kubectl get crd nodeindices.railhead.io; }
# daemonset GENERATION TAG
daemonset() {
    kubectl -n railhead get daemonset railheadd -o json | jq -e --argjson generation "$1" --arg tag "$2" '
        .metadata.generation == $generation and all(.spec.template.spec | .containers[], .initContainers[]; .image | endswith(":" + $tag))'
}
reuse_delay() { # SECONDS
    kubectl -n railhead get configmap railhead-fabric -o json |
        jq -e --argjson seconds "$1" '.data["fabric.json"] | fromjson | .addresses.reuseDelaySeconds == $seconds'
}

helm_checks() {
    local tag
    tag=$(sed -n 's/^appVersion: "\?\([^"]*\)"\?$/\1/p' "$repo/manifests/helm/railhead/Chart.yaml")
    check 'helm install' release install railhead --create-namespace
    check '... makes the DaemonSet' daemonset 1 "$tag"
    check '... with another fabric' release upgrade railhead --set fabric.addresses.reuseDelaySeconds=901
    check '... changes the ConfigMap' reuse_delay 901
    check '... and not the DaemonSet' daemonset 1 "$tag"
    check '... with another image, too' release upgrade railhead --set fabric.addresses.reuseDelaySeconds=901 --set image.tag=newer
    check '... changes the DaemonSet' daemonset 2 newer
    deny '... but not with a value that the chart does not know' release upgrade railhead --set imagee.tag=newest
    check 'helm rollback' helm rollback railhead 1 -n railhead
    check '... brings the former image' daemonset 3 "$tag"
    check '... and the former fabric' reuse_delay 900
    check 'helm uninstall' removed railhead
    check '... keeps the kind NodeIndex' kind_kept
    deny '... which a release of another namespace does not take' release install railhead-system --create-namespace
    check '... but with --take-ownership' release install railhead-system --create-namespace --take-ownership
    check '... and goes' removed railhead-system
    check 'what kubectl apply -k made' eval 'overlay 1 early node-index networks && apply'
    deny '... helm install does not take' release install railhead
    check '... but with --take-ownership --force-conflicts' release install railhead --take-ownership --force-conflicts
    check '... as the chart has it' daemonset 2 "$tag"
    check 'all of it goes' eval 'removed railhead && kubectl delete namespace railhead railhead-system && kubectl delete crd nodeindices.railhead.io'
}

# ---- a release whose pods have NICs --------------------------------------------------------
upgrade() { helm upgrade railhead "$work/page/manifests/helm/railhead" -n railhead "$@"; }
upgraded() { upgrade --set image.registry=railhead.test -f "$work/page/values.yaml" "$@"; }
went_back() { helm rollback railhead 1 -n railhead; }
its_rollout() { kubectl -n railhead rollout status daemonset railheadd --timeout="${LIMIT}s"; }
suggestion_taken() {
    kubectl -n railhead get configmap railhead-fabric -o json | jq '.data["fabric.json"] | fromjson' >"$work/fabric.before" &&
        plugin fabric suggest >"$work/fabric.json" && upgrade --reuse-values --set-json "fabric=$(<"$work/fabric.json")"
}
same_fabric() { kubectl -n railhead get configmap railhead-fabric -o json | jq -e --slurpfile before "$work/fabric.before" '.data["fabric.json"] | fromjson == $before[0]'; }
# status TEXT: node0's has it; the exit status is that of a node with a fault.
status() { plugin exec node0 -- status >"$work/status" || [ $? = 1 ] && grep -e "$1" "$work/status"; }
helm_running_checks() {
    check 'helm upgrade to the fabric that the nodes suggest, while pods have NICs' suggestion_taken
    check '... changes nothing' same_fabric
    check 'helm upgrade with another MTU' upgraded --set 'fabric.rails[0].mtu=1400'
    check '... waits for these pods' within "$LIMIT" status 'a change waits: rail0 is in use by'
    check '... and not the DaemonSet' daemonset 1 "$version"
    check '... whose RDMA goes on' thrice rdma_test
    check 'helm rollback' went_back
    check '... so that nothing waits' within "$LIMIT" status '^fine: fabric,'
    check 'helm upgrade with a newer image' upgraded --set image.tag=newer
    check '... is rolled out' its_rollout
    check '... as the chart has it' daemonset 2 newer
    check '... the pods'\'' RDMA goes on' thrice rdma_test
    check 'helm rollback' went_back
    check '... is rolled out' its_rollout
    check '... with the former image' daemonset 3 "$version"
    check '... the pods'\'' RDMA goes on' thrice rdma_test
}

# ---- a release before its fabric -----------------------------------------------------------
install_without_fabric() {
    # The label first: the DaemonSet controller of 1.36 may miss one that comes while it makes the DaemonSet's first status.
    kubectl label nodes --all railhead.io/nics=true && helm install railhead "$repo/manifests/helm/railhead" -n railhead --create-namespace \
        --set image.registry=railhead.test --set fabricConfigMap=railhead-fabric --set addressIndex=nodes --set nodeConditions=false
}
suggested() { plugin fabric suggest -- --supernet 10.104.0.0/13 --rail-prefix 16 >"$work/fabric.json"; }
offers_some() { kubectl get nodes -o json | jq -e 'all(.items[]; .status.allocatable["railhead.io/roce"] | tonumber > 0)'; }
suggest_gone() {
    helm uninstall railhead -n railhead && kubectl label nodes --all railhead.io/nics- && kubectl -n railhead delete configmap railhead-fabric
}
helm_suggest_checks() {
    # shellcheck disable=SC2016 # expanded there
    check 'no fabric, and RDMA on the PFs' each_node 'rm -r /etc/railhead && for pf in pf0 pf1; do rdma link add "rxe_$pf" type rxe netdev "$pf" || exit; done'
    check 'helm install with a ConfigMap that is not there yet' install_without_fabric
    check '... railheadd waits for it' within "$LIMIT" status 'no such file: /etc/railhead/fabric.json'
    check 'kubectl railhead fabric suggest' suggested
    check '... makes the ConfigMap' kubectl -n railhead create configmap railhead-fabric --from-file="$work/fabric.json"
    check '... which railheadd takes' rolled_out
    check '... and offers VFs by it' within "$LIMIT" offers_some
    check 'helm uninstall' suggest_gone
}
