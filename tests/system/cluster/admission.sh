# shellcheck shell=bash disable=SC2154 # sourced by run.sh, whose variables it uses
# admission.sh - what admission lets authors of networks and holders of railheadd's token do, with a real API server,
# for run.sh. The nodes ours and theirs are objects alone.
#
#   admission_checks   leaves nothing but these two nodes' absence
# by NODE: kubectl as railheadd with the token of NODE's pod; '' for a token that names no node.
by() {
    local node=$1
    shift
    jq --arg node "$node" '.users[0].user += { as: "system:serviceaccount:railhead:railheadd" }
        | if $node == "" then . else .users[0].user["as-user-extra"] = { "authentication.kubernetes.io/node-name": [$node] } end' \
        "$work/admin.kubeconfig" >"$work/by.kubeconfig" && KUBECONFIG=$work/by.kubeconfig kubectl "$@"
}
# refused TEXT COMMAND...: by admission and nothing else; the error has TEXT.
refused() {
    local text=$1 said
    shift
    said=$("$@" 2>&1) && { echo "taken: $said"; return 1; }
    echo "$said"
    grep -q 'ValidatingAdmissionPolicy' <<<"$said" && grep -qF -e "$text" <<<"$said"
}
two_nodes() {
    local name
    for name in ours theirs; do
        jq -n --arg name "$name" '{ apiVersion: "v1", kind: "Node", metadata: { name: $name, labels: { zone: "a" } } }' | kubectl create -f - || return
    done
}
object() { # KIND NAME SPEC
    jq -n --arg kind "$1" --arg name "$2" --argjson spec "$3" '{ apiVersion: "railhead.io/v1alpha1", kind: $kind, metadata: { name: $name }, spec: $spec }'
}
put() { object "$3" "$4" "$5" | by "$1" "$2" -f -; } # NODE create|replace KIND NAME SPEC
# change NODE KIND NAME FILTER: of the record that is there.
change() {
    kubectl get "$2" "$3" -o json | jq "$4" >"$work/changed.json" && by "$1" replace -f "$work/changed.json"
}
# patch NODE OF BODY [/status]: of a node, as railheadd itself does it; kubectl would read the status first.
patch() {
    local as=()
    [ -z "$1" ] || as=(-H "Impersonate-Extra-authentication.kubernetes.io%2fnode-name: $1")
    curl -sS --fail-with-body --cacert "$work/pki/ca.crt" --cert "$work/pki/admin.crt" --key "$work/pki/admin.key" -X PATCH \
        -H 'Impersonate-User: system:serviceaccount:railhead:railheadd' "${as[@]}" -H 'Content-Type: application/strategic-merge-patch+json' \
        -d "$3" "https://127.0.0.1/api/v1/nodes/$2${4:-}"
}
condition() { patch "$1" "$2" "{\"status\":{\"conditions\":[{\"type\":\"$3\",\"status\":\"True\",\"reason\":\"Test\"}]}}" /status; } # NODE OF TYPE
network() { # NAMESPACE NAME CONFIG
    jq -n --arg namespace "$1" --arg name "$2" --arg config "$3" '{ apiVersion: "k8s.cni.cncf.io/v1", kind: "NetworkAttachmentDefinition",
        metadata: { namespace: $namespace, name: $name }, spec: { config: $config } }' | kubectl apply --dry-run=server -f -
}
# warned, not_warned COMMAND...: it succeeds, with and without the warning of other plugins.
warned() {
    local said
    said=$("$@" 2>&1) || { echo "$said"; return 1; }
    echo "$said"
    grep -q '^Warning: .*gets past' <<<"$said"
}
not_warned() { ! warned "$@" && "$@"; }
in_force() { refused 'own node' patch ours theirs '{"metadata":{"labels":{"x":"y"}}}' && refused 'only the networks' network default probe '{"type":"railhead"}' && warned network default probe '{"type":"vlan"}'; }

token_checks() {
    check 'railheadd changes its own node'\''s taint' by ours taint node ours railhead.io/rails-not-ready=:NoSchedule
    check '... and condition' condition ours ours RailsReady
    check '... and takes the taint away' by ours taint node ours railhead.io/rails-not-ready-
    check '... but no other taint' refused 'no taint' by ours taint node ours other=:NoExecute
    check '... nor cordons' refused 'no taint' patch ours ours '{"spec":{"unschedulable":true}}'
    check '... nor another condition' refused 'RailsReady' condition ours ours Ready
    check '... nor capacity' refused 'RailsReady' patch ours ours '{"status":{"capacity":{"railhead.io/roce":"99"}}}' /status
    local what
    for what in '{"labels":{"zone":"b"}}' '{"annotations":{"a":"b"}}' '{"finalizers":["a.b/c"]}' \
        '{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"c","uid":"u"}]}'; do
        check "... nor metadata $what" refused 'labels, annotations, owners' patch ours ours "{\"metadata\":$what}"
        check "... nor by way of its status" refused 'labels, annotations, owners' patch ours ours "{\"metadata\":$what}" /status
    done
    check '... nor another node'\''s taint' refused 'own node' by ours taint node theirs railhead.io/rails-not-ready=:NoSchedule
    check '... nor condition' refused 'own node' condition ours theirs RailsReady
    check 'a token without a node changes none' refused 'does not name' condition '' ours RailsReady
}
index_checks() {
    check 'railheadd claims an index for its node' put ours create NodeIndex node-0 '{"node":"ours","uid":"u"}'
    check '... watches the claims of all' by ours auth can-i watch nodeindices.railhead.io
    check '... again, for a new Node' change ours nodeindex node-0 '.spec.uid = "v"'
    check '... not for another' refused 'its own node' put ours create NodeIndex node-1 '{"node":"theirs","uid":"u"}'
    check '... nor with a token without a node' refused 'its own node' put '' create NodeIndex node-1 '{"node":"ours","uid":"u"}'
    check '... the other does' put theirs create NodeIndex node-1 '{"node":"theirs","uid":"u"}'
    check '... whose index it cannot take' refused 'reclaimedBy' change ours nodeindex node-1 '.spec.node = "ours"'
    check '... nor give away its own' refused 'reclaimedBy' change ours nodeindex node-0 '.spec.node = "theirs"'
    check '... nor change its uid' refused 'reclaimedBy' change ours nodeindex node-1 '.spec += { uid: "w", reclaimedBy: "ours" }'
    check '... nor remove it' refused 'reclaimedBy' by ours delete nodeindex node-1
    check '... but mark it, as of a Node that is gone' change ours nodeindex node-1 '.spec.reclaimedBy = "ours"'
    check '... not for a third' refused 'reclaimedBy' change ours nodeindex node-1 '.spec.reclaimedBy = "third"'
    check '... and remove it then' by ours delete nodeindex node-1
    check '... as it does its own' by ours delete nodeindex node-0
    check 'the highest index' put ours create NodeIndex node-65535 '{"node":"ours","uid":"u"}'
    deny '... none above it' put ours create NodeIndex node-65536 '{"node":"ours","uid":"u"}'
    check '... and is free again' by ours delete nodeindex node-65535
}
network_checks() {
    local config
    check 'the shipped network in a new namespace' network team roce '{"cniVersion": "1.0.0", "name": "roce", "type": "railhead"}'
    check '... of a rail, without blanks' network team roce-rail3 '{"cniVersion":"1.0.0","name":"roce-rail3","type":"railhead"}'
    check '... of a rail of any name' network team roce-gpu.a-1 '{"cniVersion": "1.0.0", "name": "roce-gpu.a-1", "type": "railhead"}'
    check '... and one of another plugin' network team other '{"cniVersion": "1.0.0", "name": "other", "type": "bridge", "ipam": {"type": "host-local"}}'
    for config in '{"name": "n", "type": "host-device", "pciBusID": "0000:43:10.0"}' '{"name": "n", "plugins": [{"type": "bridge"}, {"type" :"vlan", "master": "pf0"}]}' \
        '{"name": "n", "type": "bridge", "ipam": {"type": "/tmp/x"}}'; do
        check "... and with a warning $config" warned network team other "$config"
        check '... without one where the namespace has the label' not_warned network trusted other "$config"
    done
    for config in '{"cniVersion": "1.0.0", "name": "roce", "type": "railhead", "vlan": 7}' '{"cniVersion": "1.0.0", "name": "mine", "type": "railhead"}' \
        '{"cniVersion": "1.0.0", "name": "n", "type": "rail\u0068ead"}' '{"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "railhead"}]}' \
        '{"cniVersion": "1.0.0", "name": "n", "type": "macvlan", "ipam": {"type": "railhead-ipam"}}' \
        '{"vlan": 7, "cniVersion": "1.0.0", "name": "roce", "type": "railhead"}'; do
        check "... not $config" refused 'only the networks' network team roce "$config"
        check '... but where the namespace has the label' network trusted roce "$config"
    done
    check 'a cluster admin has networks of other plugins refused' kubectl patch validatingadmissionpolicybinding railhead-network-types --type merge \
        -p '{"spec":{"validationActions":["Deny"]}}'
    check '... of what the list lacks' within "$LIMIT" refused '(vlan)' network team other '{"name": "n", "type": "vlan", "master": "pf0"}'
    check '... and of nothing else' network team other '{"name": "n", "type": "bridge"}'
}
admission_checks() {
    check 'the namespaces of two teams' eval 'kubectl create namespace team && kubectl create namespace trusted && kubectl label namespace trusted railhead.io/networks=any'
    check '... two nodes' two_nodes
    check '... rights and policies' eval 'overlay 1 early node-index node-conditions networks && apply'
    check '... are in force' within "$LIMIT" in_force
    token_checks
    index_checks
    network_checks
    check 'all of it goes' eval 'apply_gone && kubectl delete node ours theirs && kubectl delete namespace team trusted'
}
