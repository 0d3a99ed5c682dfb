#!/bin/bash
# containers.sh [BUILD] - the DaemonSet's containers do their work in the image, one after the other, with exactly the mounts, capabilities
# and read-only root that the manifests give them: CNI plugins and configuration reach the host, railheadd becomes ready.
#
# usage: containers.sh [BUILD]   (build/release, with with-capabilities and kubelet-standin)
# Needs root: a mount and a network namespace of its own, and chroot. What a container runtime adds (seccomp,
# AppArmor, limits) is not there.
# exit status: 0 all held
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
build=$(realpath "${1:-$repo/build/release}")
readonly NODE=gpu-001
fail() { echo "containers.sh: $*" >&2; exit 1; }

if [ -z "${CONTAINERS_TEST_WORK:-}" ]; then
    # Inside there is no network, from which the tools come the first time.
    CONTAINERS_TEST_TOOLS=$("$here/tools.sh")
    export CONTAINERS_TEST_TOOLS
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    CONTAINERS_TEST_WORK=$work unshare --mount --net --propagation private "$here/containers.sh" "$build"
    exit
fi
work=$CONTAINERS_TEST_WORK
ip link set lo up

# ---- image, rendering, host ---------------------------------------------------------------
root=$work/root host=$work/host
mkdir -p "$root" "$work/layout" "$host"
"$repo/manifests/image/build.py" --build "$build" --out "$work/image.tar" >/dev/null
tar -xf "$work/image.tar" -C "$work/layout"
blob() { echo "$work/layout/blobs/sha256/${1#sha256:}"; }
manifest=$(blob "$(jq -r '.manifests[0].digest' "$work/layout/index.json")")
while read -r layer; do tar -xzf "$(blob "$layer")" -C "$root"; done < <(jq -r '.layers[].digest' "$manifest")
path=$(jq -r '.config.Env[] | select(startswith("PATH="))' "$(blob "$(jq -r .config.digest "$manifest")")")
"$CONTAINERS_TEST_TOOLS/bin/kustomize" build "$repo/manifests/overlays/multus" >"$work/rendering.yaml"
/usr/bin/python3 "$here/containers.py" "$work/rendering.yaml" "$NODE" >"$work/containers.json"
# As kubelet lays a ConfigMap out, and leaves an empty directory for an optional one that is not there.
config=$work/config
mkdir "$config"
fill_config() {
    mkdir "$config/..1" && cp "$repo/manifests/overlays/multus/fabric.json" "$config/..1/" && ln -s ..data/fabric.json "$config/fabric.json" && ln -s ..1 "$config/..data"
}
fill_config

# ---- as a container runtime ------------------------------------------------------------------
sealed=$work/sealed chroot=$(PATH=$PATH:/usr/sbin command -v chroot)
mkdir -p "$sealed" "$root/proc" "$root/dev"
cp "$build/bin/with-capabilities" "$root/with-capabilities"
of() { jq -r --arg name "$1" ".[] | select(.name == \$name) | $2" "$work/containers.json"; }
volumes() { of "$1" '.mounts[] | [.from, .to, .readOnly] | @tsv'; }
# set_up NAME: its root, read-only, with its volumes.
set_up() {
    local from to read_only
    while IFS=$'\t' read -r from to read_only; do mkdir -p "$(realpath -m "$root$to")"; done < <(volumes "$1")
    mount --bind "$root" "$sealed"
    mount -o remount,bind,ro "$sealed"
    mount --rbind /proc "$sealed/proc"
    mount --rbind /dev "$sealed/dev"
    while IFS=$'\t' read -r from to read_only; do
        case $from in
            configMap:*) from=$config ;;
            # As kubelet mounts an optional one that is not there.
            secret:*) from=$work/no-secret && mkdir -p "$from" ;;
            emptyDir:*) from=$work/empty/${from#*:} && mkdir -p "$from" ;;
            /sys) ;;
            *) mkdir -p "$host$from" && from=$host$from ;;
        esac
        mount --bind "$from" "$sealed$to"
        [ "$read_only" = false ] || mount -o remount,bind,ro "$sealed$to"
    done < <(volumes "$1")
}
tear_down() { umount --recursive --lazy "$sealed"; }
# run NAME: its process is this one from here on.
run() {
    local words env
    mapfile -t words < <(of "$1" '.command[]')
    mapfile -t env < <(of "$1" '.env | to_entries[] | "\(.key)=\(.value)"')
    exec env -i "$path" "${env[@]}" "$chroot" "$sealed" /with-capabilities "$(of "$1" .add)" "${words[@]}"
}
# init: all init containers, as at the start of a pod; the status of the first that fails.
init() {
    local name status=0
    while read -r name; do
        set_up "$name"
        (run "$name") || status=$?
        tear_down
        [ "$status" = 0 ] || return "$status"
    done < <(jq -r '.[] | select(.init) | .name' "$work/containers.json")
}

# ---- a node's first pod, and its second ----------------------------------------------------------
init >"$work/said" || fail "an init container failed: $(cat "$work/said")"
for program in railhead railhead-ipam; do
    cmp "$build/bin/$program" "$host/opt/cni/bin/$program" || fail "$program is not on the host"
done
cmp "$build/bin/railctl" "$host/opt/railhead/bin/railctl" || fail "railctl is not on the host"
cmp "$config/fabric.json" "$host/etc/railhead/fabric.json" || fail "the fabric is not on the host"
[ "$(cat "$host/etc/railhead/node-name")" = "$NODE" ] || fail "the node's name is not on the host"
[ "$(cat "$host/etc/railhead/node-address")" = 192.0.2.7 ] || fail "the node's address is not on the host"
cmp "$repo/manifests/seccomp/railheadd.json" "$host/var/lib/kubelet/seccomp/railhead/railheadd.json" || fail "the list of system calls is not on the host"
init >"$work/said" || fail "an init container failed at its second start"
[ "$(grep -c unchanged "$work/said")" = 7 ] || fail "the second start changed something: $(cat "$work/said")"

# ---- railheadd ------------------------------------------------------------------------------------
answers() { # PROBE: what it runs in the container ends well
    local words
    mapfile -t words < <(of railheadd ".probes.$1[]")
    env -i "$path" "$chroot" "$sealed" "${words[@]}" >/dev/null
}
within() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}
# On a new cluster there is no fabric yet: a pod starts, is alive and not ready, and can suggest one.
rm -r "$config"/..1 "$config"/..data "$config/fabric.json" "$host/etc/railhead/fabric.json"
init >"$work/said" 2>&1 || fail "an init container failed without a fabric: $(cat "$work/said")"
set_up railheadd
"$build/bin/kubelet-standin" serve --dir "$host/var/lib/kubelet/device-plugins" >"$work/kubelet.log" 2>&1 &
kubelet=$!
trap 'kill -KILL $kubelet 2>/dev/null || true' EXIT
run railheadd 2>"$work/log" &
daemon=$!
trap 'kill -KILL $daemon $kubelet 2>/dev/null || true' EXIT
for probe in startupProbe livenessProbe; do
    within 120 answers $probe || fail "railheadd does not answer $probe without a fabric: $(tail -n 20 "$work/log")"
done
! answers readinessProbe 2>/dev/null || fail "railheadd is ready without a fabric"
grep -q 'the node has no fabric' "$work/log" || fail "railheadd does not say that there is no fabric: $(tail -n 20 "$work/log")"
# This machine has no rails, or other ones.
env -i "$path" "$chroot" "$sealed" railctl fabric suggest --listen 0 -o json >"$work/suggested" 2>/dev/null || true
jq -e --arg node "$NODE" '.observations[0].node == $node' "$work/suggested" >/dev/null || fail "railctl does not observe the node: $(cat "$work/suggested")"
fill_config
for probe in startupProbe readinessProbe livenessProbe; do
    within 120 answers $probe || fail "railheadd does not answer $probe: $(tail -n 20 "$work/log")"
done
if grep -E '"level":"error"|Read-only|denied|not permitted' "$work/log"; then fail "railheadd lacks something, see above"; fi
# As kubelet replaces a ConfigMap. A changed one is in force without a restart; a wrong one is not.
replace() { # FILTER VERSION: the fabric with a change
    mkdir "$config/..$2" && jq "$1" "$repo/manifests/overlays/multus/fabric.json" >"$config/..$2/fabric.json"
    ln -s "..$2" "$config/..new" && mv -T "$config/..new" "$config/..data"
}
is_followed() { jq -e "$1" "$host/run/railhead/fabric-follow.json" >/dev/null; }
within 60 is_followed '.refused == []' || fail "railheadd does not follow the fabric: $(tail -n 20 "$work/log")"
replace '.addresses.reuseDelaySeconds = 901' 2
within 60 cmp -s "$config/fabric.json" "$host/etc/railhead/fabric.json" || fail "a changed fabric is not in force: $(tail -n 20 "$work/log")"
replace '.rails[0].pfs = 0' 3
within 60 is_followed '.refused[0] | contains("/rails/0/pfs")' || fail "a wrong fabric is not reported: $(tail -n 20 "$work/log")"
cmp "$config/..2/fabric.json" "$host/etc/railhead/fabric.json" || fail "a wrong fabric is in force"
kill -TERM $daemon
wait $daemon || fail "railheadd did not end well: status $?"
! answers livenessProbe 2>/dev/null || fail "a railheadd that has ended answers"
kill -KILL $kubelet
wait $kubelet 2>/dev/null || true
trap - EXIT
tear_down

# ---- what is to be refused ---------------------------------------------------------------------------
# The wrong fabric of above. A node with a valid one starts with it.
init >"$work/said" 2>&1 || fail "a wrong fabric keeps a node from its start: $(cat "$work/said")"
grep -q '/rails/0/pfs' "$work/said" || fail "a wrong fabric is not named: $(cat "$work/said")"
cmp "$config/..2/fabric.json" "$host/etc/railhead/fabric.json" || fail "a wrong fabric is on the host"
rm "$host/etc/railhead/fabric.json"
status=0
init >"$work/said" 2>&1 || status=$?
[ "$status" = 3 ] || fail "a wrong fabric on a new node: status $status"
[ ! -e "$host/etc/railhead/fabric.json" ] || fail "a wrong fabric is on a new node"
echo "init containers and railheadd do their work with what the manifests give them"
