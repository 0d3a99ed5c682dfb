{{/* What every object has. */}}
{{- define "railhead.labels" -}}
app.kubernetes.io/part-of: railhead
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end -}}

{{/* One map of a list of maps. A later map wins, also with an empty value, which sprig's merge counts as absent; null removes a key. */}}
{{- define "railhead.merged" -}}
{{- $merged := dict -}}
{{- range $map := . -}}
  {{- range $key, $value := $map -}}
    {{- if kindIs "invalid" $value }}{{ $_ := unset $merged $key }}{{ else }}{{ $_ := set $merged $key $value }}{{ end -}}
  {{- end -}}
{{- end -}}
{{- toYaml $merged -}}
{{- end -}}

{{/*
Labels and annotations of an object. Each is merged before it is rendered: strict parsers (Flux) refuse a key that is there twice.
.root; .labels, .annotations: the chart's for this object alone; .given: the user's labels for it, which win over those of all objects.
*/}}
{{- define "railhead.metadata" -}}
{{- $own := include "railhead.labels" .root | fromYaml -}}
labels:
  {{- include "railhead.merged" (list .labels $own .root.Values.labels .given) | nindent 2 }}
{{- with include "railhead.merged" (list .annotations .root.Values.annotations) | fromYaml }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Empty, or with a slash at its end. */}}
{{- define "railhead.registry" -}}
{{- with .Values.global.registry | default .Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- end -}}

{{- define "railhead.image" -}}
{{- include "railhead.registry" . -}}
{{- .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion -}}
{{- with .Values.image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* Lines of a container that name its image. */}}
{{- define "railhead.containerImage" -}}
image: {{ include "railhead.image" . | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end -}}

{{/* Directories of the node, as JSON: those of the runtime, unless values name others. */}}
{{- define "railhead.directories" -}}
{{- $cniBin := dict "k3s" "/var/lib/rancher/k3s/data/cni" "microk8s" "/var/snap/microk8s/current/opt/cni/bin" "openshift" "/var/lib/cni/bin" -}}
{{- $kubeletRoot := dict "microk8s" "/var/snap/microk8s/common/var/lib/kubelet" -}}
{{- $given := .Values.directories -}}
{{- dict
  "cniBin" ($given.cniBin | default (get $cniBin .Values.runtime) | default "/opt/cni/bin" | trimSuffix "/")
  "kubeletRoot" ($given.kubeletRoot | default (get $kubeletRoot .Values.runtime) | default "/var/lib/kubelet" | trimSuffix "/")
  "cdi" ($given.cdi | default "/run/cdi") | toJson -}}
{{- end -}}

{{- define "railhead.seLinuxType" -}}
{{- .Values.seLinuxType | default (eq .Values.runtime "openshift" | ternary "spc_t" "") -}}
{{- end -}}

{{/* The ConfigMap's data, as JSON; null with a ConfigMap of the user's. */}}
{{- define "railhead.fabricData" -}}
{{- $data := dict -}}
{{- with .Values.fabric }}{{- $_ := set $data "fabric.json" (printf "%s\n" (toPrettyJson .)) -}}{{- end -}}
{{- with .Values.topology }}{{- $_ := set $data "topology.json" (printf "%s\n" (toPrettyJson .)) -}}{{- end -}}
{{- toJson $data -}}
{{- end -}}

{{/* The name has no hash of the content: kubelet updates the mounted file, and railheadd takes it over without a restart. */}}
{{- define "railhead.fabricConfigMap" -}}
{{- if .Values.fabricConfigMap -}}
  {{- if or .Values.fabric .Values.topology }}{{ fail "fabricConfigMap and an inline fabric or topology exclude each other" }}{{ end -}}
  {{- .Values.fabricConfigMap -}}
{{- else -}}
  {{- if not .Values.fabric }}{{ fail "set fabric (the content of fabric.json), or fabricConfigMap: -f values.yaml, see examples/ of the chart" }}{{ end -}}
  railhead-fabric
{{- end -}}
{{- end -}}

{{/* Resources of the inline fabric's pools, as JSON. */}}
{{- define "railhead.pools" -}}
{{- $fabric := .Values.fabric | default dict -}}
{{- get $fabric "pools" | default (list (dict "resource" "railhead.io/roce")) | toJson -}}
{{- end -}}

{{/* Source of the nodes' indices: nodes or kubernetes. */}}
{{- define "railhead.addressIndex" -}}
{{- if .Values.addressStore }}{{ fail "addressStore is of an earlier version: set addressIndex in its place (auto, nodes or kubernetes). CHANGELOG.md has the way" }}{{ end -}}
{{- $_ := include "railhead.fabricConfigMap" . -}}
{{- $given := .Values.addressIndex | default "auto" -}}
{{- if .Values.fabric -}}
  {{- $index := get (get .Values.fabric "addresses" | default dict) "index" | default dict -}}
  {{- $stated := get $index "from" | default "nodes" -}}
  {{- if not (has $given (list "auto" $stated)) }}{{ fail (printf "addressIndex is %s, and addresses.index of the fabric says %s" $given $stated) }}{{ end -}}
  {{- $stated -}}
{{- else -}}
  {{- if eq $given "auto" }}{{ fail "with fabricConfigMap set addressIndex: it is not read from there" }}{{ end -}}
  {{- $given -}}
{{- end -}}
{{- end -}}

{{/* Not empty: railheadd reports to the cluster. */}}
{{- define "railhead.nodeConditions" -}}
{{- $_ := include "railhead.fabricConfigMap" . -}}
{{- $given := .Values.nodeConditions | toString -}}
{{- if .Values.fabric -}}
  {{- $status := get .Values.fabric "nodeStatus" | default dict -}}
  {{- $stated := or (get $status "nodeCondition") (get $status "taint") (get $status "events") | not | not | ternary "true" "false" -}}
  {{- if not (has $given (list "auto" $stated)) }}{{ fail (printf "nodeConditions is %s, and nodeStatus of the fabric says %s" $given $stated) }}{{ end -}}
  {{- if eq $stated "true" }}true{{ end -}}
{{- else -}}
  {{- if eq $given "auto" }}{{ fail "with fabricConfigMap set nodeConditions: it is not read from there" }}{{ end -}}
  {{- if eq $given "true" }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* Not empty: railheadd speaks to the Kubernetes API. */}}
{{- define "railhead.token" -}}
{{- if or (eq (include "railhead.addressIndex" .) "kubernetes") (include "railhead.nodeConditions" .) }}true{{ end -}}
{{- end -}}

{{- define "railhead.listenAddress" -}}
{{- $monitored := .Values.monitoring.podMonitor.enabled -}}
{{- $address := .Values.monitoring.listenAddress | default ($monitored | ternary "$(POD_IP)" "127.0.0.1") -}}
{{- if and $monitored (or (hasPrefix "127." $address) (eq $address "[::1]")) }}{{ fail "monitoring.podMonitor: Prometheus cannot reach a loopback listenAddress" }}{{ end -}}
{{- $address -}}
{{- end -}}

{{- define "railhead.seLinux" -}}
{{- with include "railhead.seLinuxType" . }}
seLinuxOptions:
  type: {{ . }}
{{- end }}
{{- end -}}

{{/* Init containers have no capabilities. */}}
{{- define "railhead.least" -}}
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsUser: 0
capabilities:
  drop: [ALL]
  {{- with .add }}
  add: {{ toJson . }}
  {{- end }}
seccompProfile: { type: RuntimeDefault }
{{- include "railhead.seLinux" .root }}
{{- end -}}

{{/*
The objects of a file that kustomize has, too: here they get the release's namespace, labels and annotations.
.root; .file; .annotations: further ones of the chart; .given: the user's labels for them.
*/}}
{{- define "railhead.objects" -}}
{{- $root := .root -}}
{{- $annotations := .annotations -}}
{{- $given := .given -}}
{{- $text := $root.Files.Get .file | required (printf "the chart lacks %s" .file) -}}
{{- $text = regexReplaceAll "(namespace: |matchNames: \\[|system:serviceaccount:)railhead([^-.a-z0-9])" $text (printf "${1}%s${2}" $root.Release.Namespace) -}}
{{- range $document := regexSplit "(?m)^---\\s*$" $text -1 }}
{{- $object := fromYaml $document }}
{{- $own := $object.metadata }}
{{- $both := include "railhead.merged" (list $own.annotations $annotations) | fromYaml }}
{{- $made := include "railhead.metadata" (dict "root" $root "labels" $own.labels "annotations" $both "given" $given) | fromYaml }}
{{- $_ := set $object "metadata" (merge $made (omit $own "labels" "annotations")) }}
---
{{ toYaml $object }}
{{- end }}
{{- end -}}
