#!/bin/bash
# planted.sh BIN - check.sh finds what is wrong: one error of each class is planted into a copy of manifests/, and check.sh has
# to fail and name it.
set -euo pipefail
bin=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/../../../manifests" "$work/good"
"$here/overlays.py" "$work/good"
failed=0 planted=0
# plant OVERLAY FILE SED-SCRIPT WORD: with the script done to the file, checking the overlay fails and says WORD.
plant() {
    local overlay=$1 file=$2 script=$3 word=$4 said=''
    rm -rf "$work/copy"
    cp -r "$work/good" "$work/copy"
    sed -i -E "$script" "$work/copy/$file"
    planted=$((planted + 1))
    if cmp -s "$work/copy/$file" "$work/good/$file"; then
        echo "planted.sh: nothing planted into $file by $script" >&2
        failed=1
        return
    fi
    if said=$("$here/check.sh" "$bin" "$work/copy" "$overlay" 2>&1) || [[ $said != *"$word"* ]]; then
        printf "planted.sh: %s: '%s' is not found: no '%s' in\n%s\n" "$file" "$script" "$word" "$said" >&2
        failed=1
    fi
}
daemonset=base/daemonset.yaml monitoring=components/monitoring index=components/node-index networks=components/networks/networks.yaml
conditions=components/node-conditions

# Not to be built at all.
plant minimal base/kustomization.yaml 's/- daemonset.yaml/- daemon.yaml/' 'daemon.yaml'
plant minimal overlays/minimal/kustomization.yaml 's/components.networks/components\/nets/' 'nets'
# No object of its kind.
plant minimal $daemonset 's/terminationGracePeriodSeconds/terminationGraceSeconds/' 'no such field'
plant minimal $daemonset 's/hostPID: true/hostPID: "yes"/' "'yes' is no bool"
plant minimal $daemonset 's/memory: 128Mi/memory: 128MB/' 'no quantity'
plant minimal $daemonset 's/^kind: DaemonSet/kind: DemonSet/' 'DemonSet'
plant node-index $index/crds.yaml 's/openAPIV3Schema/openAPISchema/' 'no such field'
plant minimal $networks 's/^  config:/  configs:/' 'no such field'
# A key that is there twice, of which a lenient parser takes the last one: in what kustomize reads, and in what users apply.
plant minimal $daemonset 's/^  labels: \{ (.*) \}/  labels: { \1, \1 }/' 'app.kubernetes.io/name" already defined'
plant multus examples/whole-node.yaml 's/^( *)image: .*/&\n\1image: other/' 'image is there twice'
# References.
plant minimal base/namespace.yaml 's/name: railhead$/name: railheads/; s/enforce: privileged/enforce: baseline/' 'Pod Security does not admit'
plant monitored $monitoring/kustomization.yaml 's/^    namespace: railhead/    namespace: kube-system/' 'no Namespace kube-system'
plant node-status $conditions/role.yaml 's/namespace: railhead/namespace: kube-system/' 'no ServiceAccount railheadd in kube-system'
plant minimal base/service-account.yaml 's/name: railheadd/name: railhead/' 'no ServiceAccount railheadd'
plant minimal $daemonset 's/configMap: \{ name: railhead-fabric,/configMap: { name: fabric,/' 'no ConfigMap fabric'
plant minimal $daemonset 's/name: cdi, mountPath/name: cdis, mountPath/' 'no volume cdis'
plant minimal $daemonset 's/\$\(NODE_NAME\)/$(NODENAME)/' 'no variable NODENAME'
plant minimal $daemonset 's/command: \[railheadd,/command: [railhead-daemon,/' 'no program railhead-daemon'
plant minimal $daemonset 's/(railheadd.sock)(", --ask=.readyz)/\1et\2/' 'readinessProbe does not ask'
plant minimal $daemonset 's/--follow-config=.config/--follow-config=\/configs/' 'nothing is mounted at /configs'
plant minimal $daemonset 's/(kubelet.pods, type: Directory)/\1OrCreate/' 'is made where kubelet has none'
plant minimal $daemonset 's/path: .var.lib.kubelet.pods,/path: \/data\/pods,/' 'of several kubelets'
plant minimal $daemonset 's/path: .var.lib.kubelet.device-plugins/path: \/data\/device-plugins/' 'kubelet has it in'
plant kubelet-root overlays/kubelet-root/kubelet.yaml 's/"root": .*/"root": "data"/' 'is no /pods of kubelet'
plant kubelet-root components/kubelet-root/kustomization.yaml 's/name=pod-resources/name=pods/; s/delimiter: .pod-resources/delimiter: \/pods/' 'of several kubelets'
plant kubelet-root components/kubelet-root/kustomization.yaml 's/name=seccomp/name=pods/; s/delimiter: .seccomp/delimiter: \/pods/' 'of several kubelets'
plant minimal $daemonset 's/, --to, .host.seccomp\]/, --to, \/host\/profiles]/' 'nobody installs its profile railhead/railheadd.json'
plant minimal $daemonset 's/localhostProfile: railhead.railheadd.json/localhostProfile: railheadd.json/' 'nobody installs its profile railheadd.json'
plant minimal base/kustomization.yaml 's/newTag: .*/newTag: 0.0.1/' 'is not railhead:'
plant node-index $index/role.yaml 's/nodeindices/nodeindexes/' 'no resource nodeindexes'
plant node-index $index/role.yaml 's/kind: ClusterRole, name: railhead-node-index/kind: ClusterRole, name: node-index/' 'no ClusterRole node-index'
plant node-index $index/token.yaml 's/key: ca.crt/key: ca.pem/' 'no key ca.pem'
plant minimal $networks 's/resourceName: railhead.io.roce/resourceName: railhead.io\/rocket/' 'railhead.io/rocket'
plant node-index overlays/node-index/kustomization.yaml '/components.node-index/d' 'go together'
plant node-status overlays/node-status/kustomization.yaml '/components.node-conditions/d' 'go together'
# Monitoring.
plant monitored $monitoring/rules/daemon.yaml '0,/expr:/s/expr:/expression:/' 'no such field'
plant monitored $monitoring/pod-monitor.yaml 's/interval: 30s/interval: 30/' 'is no str'
plant monitored $monitoring/pod-monitor.yaml 's/podMetricsEndpoints:/podEndpoints:/' 'no such field'
plant monitored $monitoring/pod-monitor.yaml 's/matchLabels: .*/matchLabels: { app: railheadd }/' 'selects no pod'
plant monitored $monitoring/pod-monitor.yaml 's/jobLabel: .*/jobLabel: app/' 'no label app'
plant monitored $monitoring/pod-monitor.yaml 's/:9917/:9918/' 'at port 9917'
plant monitored $monitoring/pod-monitor.yaml 's/regex: railheadd/regex: railhead/' 'is not asked of railheadd'
plant monitored $monitoring/pod-monitor.yaml 's/metrics.nics/metrics\/nic/' 'no page /metrics/nic'
plant monitored $monitoring/pod-monitor.yaml '/honorLabels/d' 'without honorLabels'
plant monitored $monitoring/kustomization.yaml '/listen.yaml/d; s/^patches:/patches: []/' 'nobody can connect'
plant monitored $monitoring/listen.yaml 's/status.podIP/spec.nodeName/' "POD_IP is not the pod's"
plant monitored $monitoring/dashboards/railhead-pod.json '0,/,$/s/,$//' 'railhead-pod.json'
# Rights.
plant minimal $daemonset 's/allowPrivilegeEscalation: false/allowPrivilegeEscalation: true/' 'more than it needs'
plant node-index $index/role.yaml 's/verbs: .*/verbs: ["*"]/' "more than Railhead's own"
plant node-status $conditions/role.yaml 's/verbs: \[get, patch\]/verbs: [get, patch, delete]/' "more than Railhead's own"
# JSON, by itself and for our programs.
plant minimal overlays/minimal/fabric.json 's/"version": 1,/"version": 1/' 'fabric.json'
plant minimal overlays/minimal/fabric.json 's/"pf": 0/"pf": 0, "vlam": 1/' 'vlam'
plant minimal overlays/minimal/fabric.json 's/, "subnet".*26//' 'requires an NCCL configuration'
plant minimal $networks 's/"type": "railhead"/"type": "railhead", "vlam": 1/' 'vlam'
# Examples.
plant minimal examples/cluster.conflist 's/"type": "railhead"/"type": "railhead", "vlam": 1/' 'vlam'
plant multus examples/whole-node.yaml 's/networks: roce-all/networks: roce-every/' 'no network roce-every'
plant multus examples/one-gpu-one-vf.yaml 's/railhead.io.roce: 1/railhead.io\/roce: 2/' 'names networks for'
plant multus examples/mpijob-nccl-tests.yaml 's/slotsPerWorker/slots/' 'no such field'
plant multus examples/pytorchjob.yaml 's/containers:/container:/' 'no such field'
plant multus examples/whole-node.yaml 's/Goes with the values of multus/Goes with the values of multas/' 'with which values'
[ "$failed" = 0 ] || exit 1
echo "all $planted planted errors are found"
