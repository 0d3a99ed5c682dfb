# shellcheck shell=bash disable=SC2154 # sourced by run.sh, whose variables it uses
# helm.sh - the chart by Helm against a real API server, for run.sh. No node is needed: Helm waits for none, and the
# Job before `helm uninstall` is left out.
#
#   helm_checks   leaves nothing
helm() { "$BIN/helm" "$@"; }
# release install|upgrade NAMESPACE [OPTION...]
release() {
    helm "$1" railhead "$repo/manifests/helm/railhead" -n "$2" -f "$repo/manifests/helm/railhead/examples/kubernetes-store.yaml" "${@:3}"
}
removed() { helm uninstall railhead -n "$1" --no-hooks; } # NAMESPACE
kinds() { kubectl get crd {addressblocks,nodeaddresses,nodeindices}.railhead.io; }
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
    check '... keeps the kinds' kinds
    deny '... which a release of another namespace does not take' release install railhead-system --create-namespace
    check '... but with --take-ownership' release install railhead-system --create-namespace --take-ownership
    check '... and goes' removed railhead-system
    check 'what kubectl apply -k made' eval 'overlay 1 early kubernetes-store networks && apply'
    deny '... helm install does not take' release install railhead
    check '... but with --take-ownership --force-conflicts' release install railhead --take-ownership --force-conflicts
    check '... as the chart has it' daemonset 2 "$tag"
    check 'all of it goes' eval 'removed railhead && kubectl delete namespace railhead railhead-system && kubectl delete crd {addressblocks,nodeaddresses,nodeindices}.railhead.io'
}
