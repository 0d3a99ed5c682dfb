# shellcheck shell=bash disable=SC2154 # sourced by run.sh, whose variables it uses
# quick_start.sh - the commands of docs/start/quick-start.md, from an empty cluster to ib_write_bw and back, for run.sh.
#
#   quick_start_checks   runs the ```sh blocks of "On a cluster" to "Remove it", in their order; leaves what helm uninstall leaves
# This is other than on the page:
#   oci://YOUR-REGISTRY/charts/railhead   the chart of this repository; without helm in DIR, its rendering
#   YOUR-REGISTRY                         railhead.test; its images are on the node already
#   editor                                writes the node, soft RoCE, VFs and the fabric's prefix of a pool; of two nodes none, since they claim
#                                         their indices, but a range of probe addresses
#                                         and for slow guests more time for the check before helm uninstall, less than Helm's own 5 minutes
#   ib_write_bw                           gently, as vm/lib.sh has it: little in flight
#   pods on two nodes                     on one node, unless there are two; their VFs are of one PF
readonly SOFT_ROCE="s/ib_write_bw -d/ib_write_bw ${gentle[*]} -d/"
version=$(sed -n 's/^appVersion: "\?\([^"]*\)"\?$/\1/p' "$repo/manifests/helm/railhead/Chart.yaml")

quick_start_node() {
    each_node "ctr -n k8s.io images import /mnt/node/tools.tar &&
        ctr -n k8s.io images tag docker.io/library/railhead-tools:$version railhead.test/railhead-tools:$version &&
        ctr -n k8s.io images tag railhead.test/railhead:1 railhead.test/railhead:$version &&
        ctr -n k8s.io images tag railhead.test/railhead:2 railhead.test/railhead:newer"
}

# page_block N: its commands. page_blocks: how many there are.
page_text() { sed -n '/^## On a cluster/,$p' "$work/page/quick-start.md"; }
page_blocks() { page_text | grep -c '^```sh$'; }
page_block() {
    page_text | awk -v wanted="$1" '/^```sh$/ { block++; inside = 1; next } /^```$/ { inside = 0 } inside && block == wanted' |
        sed "s#oci://YOUR-REGISTRY/charts/railhead#$work/page/manifests/helm/railhead#; s#YOUR-REGISTRY#railhead.test#g; $SOFT_ROCE"
}
# run_block N: again until ib_write_bw reports; on a busy machine emulated clocks are too irregular for it ("Correlation coefficient").
run_block() {
    page_block "$1" >"$work/page/block" || return
    if grep -q ib_write_bw "$work/page/block"; then within 300 page_commands; else page_commands; fi
    local status=$?
    cat "$work/page/said"
    return $status
}
# page_commands: these and what they say are kept.
page_commands() {
    (cd "$work/page" && PATH=$work/page/bin:$PATH bash -veo pipefail block) >"$work/page/said" 2>&1
    local status=$?
    cat "$work/page/said" >>"$LOGS/quick_start.log"
    return $status
}
# thrice COMMAND: what moves data, as data_moves of vm/lib.sh has it: on a busy machine the emulated NICs lose more than soft RoCE bears.
thrice() { "$@" || "$@" || "$@"; }

page_prepare() {
    rm -rf "$work/page" && mkdir -p "$work/page/bin" && cp -r "$repo"/{manifests,docs/start/quick-start.md} "$work/page" || return
    ln -s "$BIN/kubectl" "$work/page/bin/kubectl"
    local two_pods=$work/page/manifests/examples/two-pods.yaml named='s/{ "gpu-001": 0, "gpu-002": 1 }/{ "node0": 0 }/'
    sed -i "$SOFT_ROCE" "$two_pods" || return
    if [ ${#nodes[@]} = 1 ]; then
        sed -i '/^  affinity:/,/labelSelector/d' "$two_pods" || return
    else
        named='s/"nodes": {.*},/"addresses": { "index": { "from": "kubernetes" } }, "reachability": {},/
            s/"pf": 0,/& "probeAddresses": "10.200.248.0-10.200.251.255",/'
    fi
    cat >"$work/page/bin/editor" <<END
#!/bin/sh
sed -i '$named; s/"pf": 0,/& "softRoce": true,/; s/"version": 1,/& "provision": { "vfs": 4 },/' "\$1"
echo 'removalCheck: { timeoutSeconds: 290 }' >>"\$1"
END
    if [ -x "$BIN/helm" ]; then ln -s "$BIN/helm" "$work/page/bin/helm"; else rendered_helm >"$work/page/bin/helm"; fi
    chmod 755 "$work/page/bin/editor" "$work/page/bin/helm"
}
# rendered_helm: a program that installs what the chart's templates give, without the Job of `helm uninstall`.
rendered_helm() {
    cat <<END
#!/bin/bash
# helm install NAME CHART -n NAMESPACE --create-namespace --set image.registry=REGISTRY -f VALUES; helm uninstall NAME -n NAMESPACE
set -eo pipefail
if [ "\$1" = install ]; then
    echo 'image: { registry: railhead.test }' >registry.yaml
    "$repo/build/release/bin/helm_render" -namespace "\$5" -name "\$2" "\$3" "\${@: -1}" registry.yaml |
        awk -v RS='---\n' '!/helm\.sh\/hook/ { printf "---\n%s", \$0 }' >rendered.yaml
    kubectl create namespace "\$5"
    kubectl apply -f rendered.yaml
else
    kubectl delete -f rendered.yaml
fi
END
}

# ---- what is seen --------------------------------------------------------------------------
# uninstall_refused: by the Job, which names the pods.
uninstall_refused() {
    local said pod
    said=$(helm uninstall railhead -n railhead 2>&1) && { echo "it went: $said"; return 1; }
    kubectl -n railhead logs job/railhead-removal-check >"$work/refusal" && cat "$work/refusal" && for pod in first-pod rdma-server rdma-client; do
        grep -q "^default/$pod on node[01]: railhead.io/roce$" "$work/refusal" || return
    done
}
measured() { grep -E '^ *4096 +[0-9]+ +[0-9.]+ +[0-9.]+' "$work/page/said"; }
# rdma_test: by railctl in the pods, which have the devices, unlike the DaemonSet's container.
rdma_test() {
    local address listener status=0
    address=$(kubectl get pod rdma-server -o jsonpath='{.status.podIP}') || return
    kubectl exec rdma-server -- railctl rdma-test --listen "$address:18600" --wait 120 host &
    listener=$!
    within 120 kubectl exec rdma-server -- grep -q ':48A8 00000000:0000 0A ' /proc/net/tcp &&
        kubectl exec rdma-client -- railctl rdma-test --duration 1 --size 4096 --depth 8 --timeout 18 host "$address:18600" || status=1
    # It would outlive this kubectl, and keep the port.
    kubectl exec rdma-server -- killall railctl
    wait "$listener"
    return $status
}
# indices_claimed: each node has an index, and the pods' addresses are of the blocks of both.
indices_claimed() {
    local pod number blocks=()
    kubectl get nodeindices -o json | jq -e '[.items[].spec.node] | sort == ["node0", "node1"]' || return
    for pod in rdma-server rdma-client; do
        number=$(kubectl exec "$pod" -- ip -4 -o address show net1 | sed -n 's#.* inet 10\.200\.0\.\([0-9]*\)/.*#\1#p') || return
        blocks+=($((number / 64)))
    done
    echo "${blocks[*]}" && [[ ${blocks[*]} == '0 1' || ${blocks[*]} == '1 0' ]]
}
# probed: the nodes know each other by their claims, and reach each other.
probed() {
    local pod
    for pod in $(kubectl -n railhead get pods -l app.kubernetes.io/name=railheadd -o name); do
        kubectl -n railhead exec "$pod" -c railheadd -- railctl reachability -o json |
            jq -e '[.rails[0].peers[] | .node + " " + .state] | . == ["node0 reachable"] or . == ["node1 reachable"]' || return
    done
}
on_both_nodes() { kubectl get pods rdma-server rdma-client -o json | jq -e '[.items[].spec.nodeName] | sort == ["node0", "node1"]'; }
not_there() { ! kubectl get "$@"; }

quick_start_checks() {
    local block began=$SECONDS first commands=0 took=0
    check 'images of the quick start' quick_start_node
    check '... and its page' page_prepare
    kubectl label nodes --all nvidia.com/gpu.present=true >/dev/null
    for ((block = 1; block <= $(page_blocks); block++)); do
        first=$(page_block "$block" | head -n 1)
        if [[ $first == 'kubectl delete pod '* ]]; then
            printf 'quick start: %d commands and the pushes to a registry, %d:%02d minutes, %d MB of images, from nothing to ib_write_bw\n' \
                "$commands" $((took / 60)) $((took % 60)) $((($(node stat -c %s /mnt/images/railhead-1.tar) + $(stat -c %s "$work/node/tools.tar")) / 1000000))
            [ ! -x "$BIN/helm" ] || { helm_running_checks && check 'helm uninstall is refused while pods have NICs' uninstall_refused; }
        fi
        need "$first" run_block "$block"
        commands=$((commands + $(wc -l <"$work/page/block")))
        [[ $(<"$work/page/block") != *ib_write_bw* ]] || {
            took=$((SECONDS - began))
            tail -n 3 "$work/page/said"
            check '... shows the bandwidth' measured
            check '... as does railctl rdma-test between these pods' thrice rdma_test
            [ ${#nodes[@]} = 1 ] || { check '... on both nodes' on_both_nodes && check '... with addresses by the indices that these claimed' indices_claimed &&
                check '... which each knows of the other, and probes it' within "$LIMIT" probed; }
        }
    done
    check '... the check before it is gone' not_there -n railhead job railhead-removal-check
    check '... as is the DaemonSet' not_there -n railhead daemonset railheadd
    check '... the node offers nothing' within "$LIMIT" offers 0
    [ ! -x "$BIN/helm" ] || helm_suggest_checks
}
