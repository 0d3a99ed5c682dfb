"""Kinds that other projects add to the API, as far as manifests/ uses them: Multus' networks, Kubeflow's jobs.

Fields by name; a word is a type of models.py, a list of one a map of those, None is anything. Sources: the definitions in
k8snetworkplumbingwg/network-attachment-definition-client (artifacts/networks-crd.yaml), kubeflow/training-operator
(manifests/base/crds, v1) and kubeflow/mpi-operator (deploy/v2beta1).
"""
RUN_POLICY = {'cleanPodPolicy': 'str', 'ttlSecondsAfterFinished': 'int', 'activeDeadlineSeconds': 'int', 'backoffLimit': 'int',
              'schedulingPolicy': None, 'suspend': 'bool', 'managedBy': 'str'}
REPLICAS = [{'replicas': 'int', 'restartPolicy': 'str', 'template': 'V1PodTemplateSpec'}]
KINDS = {
    ('k8s.cni.cncf.io/v1', 'NetworkAttachmentDefinition'): {'config': 'str'},
    ('kubeflow.org/v1', 'PyTorchJob'): {
        'runPolicy': RUN_POLICY, 'elasticPolicy': None, 'nprocPerNode': 'str', 'pytorchReplicaSpecs': REPLICAS},
    ('kubeflow.org/v2beta1', 'MPIJob'): {
        'runPolicy': RUN_POLICY, 'slotsPerWorker': 'int', 'runLauncherAsWorker': 'bool', 'sshAuthMountPath': 'str',
        'launcherCreationPolicy': 'str', 'mpiImplementation': 'str', 'mpiReplicaSpecs': REPLICAS},
}


def problems(models, document):
    """None: no kind of these."""
    spec = KINDS.get((document.get('apiVersion'), document.get('kind')))
    if spec is None:
        return None
    fields = {'apiVersion': 'str', 'kind': 'str', 'metadata': 'V1ObjectMeta', 'spec': spec}
    return list(of_fields(models, fields, document, ''))


def of_fields(models, kind, value, path):
    if isinstance(kind, str):
        yield from models.of_type(kind, value, path)
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
