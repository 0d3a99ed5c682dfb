# shellcheck shell=bash disable=SC2034 # for those who source this file
# daemonset.sh - the DaemonSet's pod on a guest's container runtime, for scripts started by
# `tests/system/cri/run.sh -D N`, after runtime_start:
#
#   . "$SRC/tests/system/cri/daemonset.sh"
#   daemonset_start RELEASE   its init containers to their end, then railheadd, from
#                             railhead.test/railhead:RELEASE, with the mounts, the environment and the
#                             capabilities of the manifest. Sets daemonset to its sandbox.
#   daemonset_ready RELEASE   what its readiness probe asks, also while another release runs
#   daemonset_pid             railheadd's
# The ConfigMap railhead-fabric is the directory /tmp/configmaps/railhead-fabric.
daemonset=''
CONTAINERS=/mnt/images/containers.json
readonly CONFIG_MAPS=/tmp/configmaps

daemonset_start() {
    local image=railhead.test/railhead:$1 name path
    local pod=(--name "railheadd-$1" --namespace railhead --uid "00000000-0000-0000-0000-00000000000$1"
        --log-directory "$POD_LOGS/railheadd-$1" --host-network --host-pid)
    # As systemd has it: what the host mounts shows in containers that ask for it.
    mount --make-rshared / || return
    # As kubelet mounts an optional Secret that is not there.
    mkdir -p "$CONFIG_MAPS/no-secret" || return
    rm -rf "/tmp/empty/$1" && mkdir -p "/tmp/empty/$1/probes" || return
    # hostPath: DirectoryOrCreate
    while read -r path; do mkdir -p "$path" || return; done < <(jq -r '.[].mounts[].from | select(startswith("/"))' "$CONTAINERS")
    cri-pod ready --host-network "$image" && daemonset=$(cri-pod sandbox "${pod[@]}") || return
    while read -r name; do daemonset_container "$1" "$name" || return; done < <(jq -r '.[] | select(.init) | .name' "$CONTAINERS")
    daemonset_container "$1" railheadd --detach
}
# daemonset_container RELEASE NAME [OPTION...]: of the image and the pod of daemonset_start.
daemonset_container() {
    local said empty=/tmp/empty/$1
    shift
    mapfile -t said < <(jq -r --arg name "$1" --arg maps "$CONFIG_MAPS" --arg empty "$empty" '.[] | select(.name == $name) |
        (.mounts[] | "--mount", (.from | sub("^configMap:railhead-fabric(-[0-9a-z]+)?$"; $maps + "/railhead-fabric")
                | sub("^secret:.*"; $maps + "/no-secret") | sub("^emptyDir:"; $empty + "/")) + ":" + .to
            + (if .readOnly then ":ro" else "" end) + (if .followsHost then ":slave" else "" end)),
        (.env | to_entries[] | "--env", "\(.key)=\(.value)"), (.add | split(",")[] | "--capability", .),
        (.seccomp // empty | "--seccomp", "/var/lib/kubelet/seccomp/" + .), "--", .command[]' "$CONTAINERS")
    cri-pod container "${pod[@]}" --sandbox "$daemonset" --image "$image" --confined --container "$@" "${said[@]}"
}
daemonset_ready() {
    local words
    mapfile -t words < <(jq -r '.[] | select(.name == "railheadd") | .probes.readinessProbe[]' "$CONTAINERS")
    "${words[@]/\/run\/probes/\/tmp\/empty\/$1\/probes}"
}
daemonset_pid() {
    local path name
    for path in /proc/[0-9]*; do
        read -r name <"$path/comm" 2>/dev/null && [ "$name" = railheadd ] && { echo "${path#/proc/}"; return; }
    done
    return 1
}
