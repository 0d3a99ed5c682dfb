"""Kinds that other projects add to the API, as far as manifests/ uses them: Multus' networks, Kubeflow's jobs, what Prometheus
scrapes and evaluates.

Fields by name; a word is a type of models.py, a list of one a map of those, a tuple of one a list, None is anything. Sources: the
definitions in k8snetworkplumbingwg/network-attachment-definition-client (artifacts/networks-crd.yaml), kubeflow/training-operator
(manifests/base/crds, v1), kubeflow/mpi-operator (deploy/v2beta1) and prometheus-operator/prometheus-operator
(example/prometheus-operator-crd, v1).
"""
RUN_POLICY = {'cleanPodPolicy': 'str', 'ttlSecondsAfterFinished': 'int', 'activeDeadlineSeconds': 'int', 'backoffLimit': 'int',
              'schedulingPolicy': None, 'suspend': 'bool', 'managedBy': 'str'}
REPLICAS = [{'replicas': 'int', 'restartPolicy': 'str', 'template': 'V1PodTemplateSpec'}]
RELABELING = {'action': 'str', 'sourceLabels': 'list[str]', 'separator': 'str', 'targetLabel': 'str', 'regex': 'str', 'modulus': 'int',
              'replacement': 'str'}
ENDPOINT = {'port': 'str', 'path': 'str', 'scheme': 'str', 'params': None, 'interval': 'str', 'scrapeTimeout': 'str', 'honorLabels': 'bool',
            'honorTimestamps': 'bool', 'relabelings': (RELABELING,), 'metricRelabelings': (RELABELING,), 'filterRunning': 'bool'}
RULE = {'record': 'str', 'alert': 'str', 'expr': 'str', 'for': 'str', 'keep_firing_for': 'str', 'labels': 'dict(str, str)',
        'annotations': 'dict(str, str)'}
KINDS = {
    ('monitoring.coreos.com/v1', 'PodMonitor'): {
        'jobLabel': 'str', 'podTargetLabels': 'list[str]', 'podMetricsEndpoints': (ENDPOINT,), 'selector': 'V1LabelSelector',
        'namespaceSelector': {'any': 'bool', 'matchNames': 'list[str]'}, 'sampleLimit': 'int'},
    # Expressions are promtool's (tests/system/alerts).
    ('monitoring.coreos.com/v1', 'PrometheusRule'): {'groups': ({'name': 'str', 'interval': 'str', 'rules': (RULE,)},)},
    ('k8s.cni.cncf.io/v1', 'NetworkAttachmentDefinition'): {'config': 'str'},
    ('kubeflow.org/v1', 'PyTorchJob'): {
        'runPolicy': RUN_POLICY, 'elasticPolicy': None, 'nprocPerNode': 'str', 'pytorchReplicaSpecs': REPLICAS},
    ('kubeflow.org/v2beta1', 'MPIJob'): {
        'runPolicy': RUN_POLICY, 'slotsPerWorker': 'int', 'runLauncherAsWorker': 'bool', 'sshAuthMountPath': 'str',
        'launcherCreationPolicy': 'str', 'mpiImplementation': 'str', 'mpiReplicaSpecs': REPLICAS},
}
# Kinds without `spec`. Source: openshift/api, security/v1.
KINDS_WITHOUT_SPEC = {
    ('security.openshift.io/v1', 'SecurityContextConstraints'): {
        **dict.fromkeys(('allowHostDirVolumePlugin', 'allowHostIPC', 'allowHostNetwork', 'allowHostPID', 'allowHostPorts',
                         'allowPrivilegeEscalation', 'allowPrivilegedContainer', 'readOnlyRootFilesystem'), 'bool'),
        **dict.fromkeys(('allowedCapabilities', 'defaultAddCapabilities', 'requiredDropCapabilities', 'seccompProfiles', 'volumes', 'users',
                         'groups'), 'list[str]'),
        **dict.fromkeys(('runAsUser', 'seLinuxContext', 'fsGroup', 'supplementalGroups'), {'type': 'str'})},
}


def problems(models, document):
    """None: no kind of these."""
    kind = document.get('apiVersion'), document.get('kind')
    fields = {'spec': KINDS[kind]} if kind in KINDS else KINDS_WITHOUT_SPEC.get(kind)
    if fields is None:
        return None
    fields = {'apiVersion': 'str', 'kind': 'str', 'metadata': 'V1ObjectMeta', **fields}
    return list(of_fields(models, fields, document, ''))


def of_fields(models, kind, value, path):
    if isinstance(kind, str):
        yield from models.of_type(kind, value, path)
    elif isinstance(kind, tuple):
        if not isinstance(value, list):
            yield f'{path}: {value!r} is no list'
            return
        for number, item in enumerate(value):
            yield from of_fields(models, kind[0], item, f'{path}/{number}')
    elif kind is not None and not isinstance(value, dict):
        yield f'{path}: {value!r} is no map'
    elif isinstance(kind, list):
        for name, item in value.items():
            yield from of_fields(models, kind[0], item, f'{path}/{name}')
    elif kind is not None:
        for name, item in value.items():
            if name in kind:
                yield from of_fields(models, kind[name], item, f'{path}/{name}')
            else:
                yield f'{path}/{name}: there is no such field'
