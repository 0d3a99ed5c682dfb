# shellcheck shell=bash
# node.sh - the node of run.sh: two rails of stand-ins, kubelet's stand-in, and two pods. Sourced.
# rail0's VFs are devices ("early"), rail1's are slots ("late").
# run.sh sets the directory of the new version's programs, and one for all that is written.
: "${new:?}" "${work:?}"
root=$work/root
daemon_pid='' kubelet_pid=''
declare -A uid=([early]=11111111-1111-4111-8111-111111111111 [late]=22222222-2222-4222-8222-222222222222)
declare -A bdf=() given=()

stop() { # PID
    [ -n "$1" ] || return 0
    kill "$1" 2>/dev/null
    wait "$1" 2>/dev/null || true
}
stop_daemon() { stop "$daemon_pid"; daemon_pid=''; }
stop_node() { stop_daemon; stop "$kubelet_pid"; kubelet_pid=''; }

# fresh_node: as after the installation, without railheadd.
fresh_node() {
    local name address names
    stop_node
    for name in wire early late; do ip netns del "$name" 2>/dev/null; done
    # The kernel removes the namespaces' links later.
    within 60 no_stand_ins || die "the last node's links stay"
    rm -rf "$root"
    mkdir -p "$root"
    bdf=() given=()
    while read -r name address; do bdf[$name]=$address; done < <("$new/crash_sweep" fake-root "$root" --vfs 2)
    names=(pf0 pf1 "${!bdf[@]}")
    echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
    for name in wire early late; do ip netns add "$name" && ip -n "$name" link set lo up; done
    for name in "${names[@]}"; do echo "link add $name type veth peer name $name netns wire"; done | ip -batch -
    for name in "${names[@]}"; do echo "link set $name up"; done | ip -n wire -batch -
    ip link set pf0 up
    ip link set pf1 up
    mkdir -p "$root"/etc/railhead "$root"/kubelet "$root"/var/lib/kubelet/device-plugins
    echo node0 >"$root/etc/railhead/node-name"
    fabric >"$root/etc/railhead/fabric.json"
    "$new/kubelet-standin" serve --dir "$root/kubelet" >"$work/kubelet.log" 2>&1 &
    kubelet_pid=$!
    within 60 test -S "$root/kubelet/kubelet.sock" || die "kubelet's stand-in does not start"
}
no_stand_ins() { [ -z "$(ip -o link show type veth)" ]; }
fabric() {
    jq -n '{version: 1,
        rails: [range(2) | {name: "rail\(.)", pf: "pf\(.)", subnet: "10.10\(.).0.0/24",
                            nodeRanges: {node0: "10.10\(.).0.10-10.10\(.).0.99"}}],
        addresses: {reuseDelaySeconds: 0}, policy: {networks: [{allow: ["*"], devices: "any"}]},
        health: {intervalSeconds: 1, vfSeconds: 1},
        pools: [{resource: "railhead.io/early", rails: ["rail0"]},
                {resource: "railhead.io/late", rails: ["rail1"], binding: "late"}]}'
}
within() { # SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

start_daemon() { # DIRECTORY
    stop_daemon
    rm -f "$root/run/railhead/bind.sock"
    RAILHEAD_ROOT=$root "$1/railheadd" --kubelet-dir /kubelet --log-level debug >"$work/log" 2>&1 &
    daemon_pid=$!
    within 120 test -S "$root/run/railhead/bind.sock" || { tail -n 3 "$work/log"; return 1; }
    within 120 test -e "$root/run/railhead/health.json" || { echo "no health.json"; return 1; }
    local kind
    for kind in early late; do
        "$new/kubelet-standin" devices --dir "$root/kubelet" "railhead.io/$kind" --wait 1 --timeout 120 || return
    done
}

# ---- pods ------------------------------------------------------------------------------
# Each pod has one device. kubelet's checkpoint says whose it is.

allocate() { # KIND
    local answer
    answer=$("$new/kubelet-standin" allocate --dir "$root/kubelet" "railhead.io/$1" 1) || return
    given[$1]=$(jq -r '.devices[0]' <<<"$answer")
    write_checkpoint
}
write_checkpoint() {
    local kind file=$root/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
    for kind in "${!given[@]}"; do
        jq -n --arg uid "${uid[$kind]}" --arg resource "railhead.io/$kind" --arg id "${given[$kind]}" \
            '{PodUID: $uid, ContainerName: "main", ResourceName: $resource, DeviceIDs: {"-1": [$id]}, AllocResp: ""}'
    done | jq -s '{Data: {PodDeviceEntries: .}, Checksum: 1}' \
        >"$file.new" && mv "$file.new" "$file"
}

config='{"cniVersion": "1.1.0", "name": "skew", "type": "railhead", "linkTimeoutSeconds": 60, "previousDelTimeoutSeconds": 5,
    "conflictProbeMs": 0, "announce": false, "ncclConfig": "off"}'
cni() { # DIRECTORY COMMAND KIND, the configuration on stdin
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin RAILHEAD_ROOT="$root" CNI_COMMAND="$2" CNI_PATH="$1" CNI_CONTAINERID="skew-$3" \
        CNI_NETNS="/run/netns/$3" CNI_IFNAME=net1 CNI_ARGS="IgnoreUnknown=1;K8S_POD_UID=${uid[$3]}" "$1/railhead"
}
with_result() { jq --slurpfile before "$work/result-$1" '. + {prevResult: $before[0]}' <<<"$config"; }
add() { cni "$1" ADD "$2" <<<"$config" >"$work/result-$2" || { cat "$work/result-$2"; return 1; }; }
check() { with_result "$2" | cni "$1" CHECK "$2"; }
del() { cni "$1" DEL "$2" <<<"$config"; }
gc() { jq '. + {"cni.dev/valid-attachments": []}' <<<"$config" | cni "$1" GC early; }

# ---- state -----------------------------------------------------------------------------
railctl() { local directory=$1; shift; RAILHEAD_ROOT=$root "$directory/railctl" "$@"; }
# write_state DIRECTORY: two pods, and a VF that is drained.
write_state() {
    start_daemon "$1" || return
    allocate early && allocate late && add "$1" early && add "$1" late || return
    railctl "$1" drain pf0v1 --reason "skew" || return
    is_drained "$1"
}
# Both attachments, their addresses and the records of health.
read_state() {
    local part
    for part in journal ipam health devices; do
        local command=("$part")
        case $part in journal | ipam) command+=(list) ;; esac
        railctl "$1" "${command[@]}" -o json >"$work/$part.json" || [ "$part" = health ] || { cat "$work/$part.json"; return 1; }
        jq -e '.ok != false' "$work/$part.json" >/dev/null || { cat "$work/$part.json"; return 1; }
    done
    local kind
    for kind in early late; do
        grep -q "skew-$kind" "$work/journal.json" || { echo "journal list lacks skew-$kind"; return 1; }
        grep -q "skew-$kind" "$work/ipam.json" || { echo "ipam lacks skew-$kind"; return 1; }
    done
}
# railheadd has taken the drain into its records of health.
# Its exit status says that something is unhealthy.
has_drain() { { railctl "$1" health -o json || true; } | jq -e 'any(.. | strings; . == "drained")' >/dev/null; }
is_drained() { within 60 has_drain "$1" || { echo "health lacks the drain"; return 1; }; }
nothing_left() {
    ! railctl "$1" journal list -o json | grep skew- || return 1
    railctl "$1" ipam list -o json >"$work/ipam.json" || return 1
    ! jq -c '.. | objects | select((.container? // "" | startswith("skew-")) and .state != "cooling down")' "$work/ipam.json" | grep . || return 1
    [ "$(ip -br link show type veth | grep -c '^pf[01]v')" = 4 ] || { ip -br link; return 1; }
}
# The drained VF comes back, and the next pod has it.
again() {
    railctl "$1" undrain pf0v1 || return
    "$new/kubelet-standin" devices --dir "$root/kubelet" railhead.io/early --wait 2 --timeout 120 || return
    allocate early && add "$1" early && check "$1" early && del "$1" early
}
