# shellcheck shell=bash
# guest_node.sh - a node with railheadd and a stand-in of kubelet, and pods that are network
# namespaces, for scripts in a guest that have sourced tests/support/vm/lib.sh.
#
# The stand-in has a directory of its own, since what kubelet writes of its pods, other plugins'
# devices included, is for the script to write.
readonly KUBELET=${KUBELET:-/run/kubelet-standin}
export PATH=$PATH:$BUILD/bin
daemons=()                               # by number: process ids
devices=()                               # of the pod in question

# ---- the node ----------------------------------------------------------------------------
# fabric FILTER: fabric.json, which is two rails changed by the jq filter; in one step, as
# railheadd reads it when it likes.
fabric() {
    mkdir -p /etc/railhead || return
    jq -n --arg node "$(uname -n)" '{ version: 1, addresses: { conflictProbeMs: 0, reuseDelaySeconds: 0 },
        rails: [ range(2) | { name: "rail\(.)", pf: "pf\(.)", subnet: "10.10\(.).0.0/24", gateway: "10.10\(.).0.254",
                              nodeRanges: { ($node): "10.10\(.).0.10-10.10\(.).0.17" } } ] } | '"$1" >/etc/railhead/.new &&
        mv /etc/railhead/.new /etc/railhead/fabric.json
}
kubelet_start() {
    mkdir -p "$KUBELET" /opt/cni/bin /etc/cni/net.d && rm -f "$OUT"/railheadd-*.log || return
    ln -sf "$BUILD"/bin/railhead "$BUILD"/bin/railhead-ipam /opt/cni/bin/ || return
    echo '{ "cniVersion": "1.0.0", "name": "rails", "type": "railhead", "linkTimeoutSeconds": 120, "capabilities": { "deviceID": true } }' >/etc/cni/net.d/rails.conf
    kubelet-standin serve --dir "$KUBELET" >"$OUT/kubelet.log" 2>&1 &
    within 60 test -S "$KUBELET/control.sock"
}
# daemon_start NUMBER [OPTION...]; its log is railheadd-NUMBER.log.
daemon_start() {
    local number=$1
    shift
    railheadd --kubelet-dir "$KUBELET" --resync-interval 86400 "$@" >>"$OUT/railheadd-$number.log" 2>&1 &
    daemons[number]=$!
}
daemon_end() { # NUMBER [SIGNAL]: by SIGTERM, or by SIGNAL
    kill "-${2:-TERM}" "${daemons[$1]}" && { wait "${daemons[$1]}" || [ "${2:-TERM}" = KILL ]; }
}
logged() { grep -q "$2" "$OUT/railheadd-$1.log"; } # NUMBER PATTERN
# times NUMBER PATTERN N: exactly so often; least: or more. Kubelet may drop a plugin, which then registers once more.
times() { [ "$(grep -c "$2" "$OUT/railheadd-$1.log")" = "$3" ]; }
least() { [ "$(grep -c "$2" "$OUT/railheadd-$1.log")" -ge "$3" ]; }

# ---- what kubelet knows ------------------------------------------------------------------
seen() { kubelet-standin devices --dir "$KUBELET" "railhead.io/$1" --timeout 1; }
# has RESOURCE N HEALTH: exactly so many.
has() { [ "$(seen "$1" | jq "[.[] | select(.health == \"$3\")] | length")" = "$2" ]; }
offers() { within 120 has "$1" "$2" Healthy; }
unhealthy() { within 120 has "$1" "$2" Unhealthy; }
is() { seen "$1" | jq -e --arg id "$2" "any(.[]; .id == \$id and .health == \"$3\")"; } # RESOURCE ID HEALTH
knows() { seen "$1" | jq -e --arg id "$2" 'any(.[]; .id == $id)'; }                     # RESOURCE ID

# watch_lists RESOURCE...: what a pod that comes at any moment would meet, until watch_end.
watch_lists() {
    local resource
    while :; do
        for resource in "$@"; do
            echo "$resource $(kubelet-standin devices --dir "$KUBELET" "railhead.io/$resource" --timeout 0 2>/dev/null |
                jq -c 'map({ (.id): .health }) | add // {}')"
        done
    done >/tmp/lists &
    watcher=$!
}
watch_end() { kill "$watcher" && { wait "$watcher" || true; } 2>/dev/null; }
# never RESOURCE FILTER: of what was met. A kubelet that is just starting knows nothing.
never() {
    local met
    [ "$(grep -c "^$1 {\"" /tmp/lists)" -gt 2 ] || { echo "nothing was seen of $1"; return 1; }
    met=$(sed -n "s/^$1 {\"/{\"/p" /tmp/lists | jq -c "select($2)" | sort | uniq -c) || return
    if [ -n "$met" ]; then echo "$met"; return 1; fi
}

# ---- pods --------------------------------------------------------------------------------
# allocate RESOURCE N: sets devices.
# shellcheck disable=SC2034 # for those who source this file
allocate() {
    kubelet-standin allocate --dir "$KUBELET" "railhead.io/$1" "$2" >/tmp/allocate || return
    mapfile -t devices < <(jq -r '.devices | sort | .[]' /tmp/allocate)
}
release() { kubelet-standin release --dir "$KUBELET" "railhead.io/$1" "${@:2}"; } # RESOURCE DEVICE...
pod() { ip netns add "$1" && ip -n "$1" link set lo up; }                         # POD
cni() { # add|check|del POD DEVICE [OPTION...]
    cnidriver "$1" -conf /etc/cni/net.d/rails.conf -id "$2" -netns "/run/netns/$2" -ifname net1 -cap "{\"deviceID\":\"$3\"}" "${@:4}"
}
holder() { grep -m 1 . "/run/railhead/locks/$1.lock"; } # DEVICE: of its journal entry, or of a slot
# world: the links of both rails with their VFs, and the RDMA devices, as pods find them and give them back.
world() {
    local pf
    for pf in pf0 pf1; do ip -d -j link show "$pf" | jq -c '.[0].vfinfo_list'; done
    ip -d -j link show | jq -c 'sort_by(.ifname)[] | [.ifname, .address, .mtu, (.flags - ["LOWER_UP"]), .altnames, .ifalias]'
    rdma link
}
# No file of an attachment. railheadd may be resetting an idle device at this moment.
nothing_left() {
    local file left=''
    while read -r file; do
        [[ $file == */_reset/* || $file == *.lock && $(head -n 1 "$file") == _reset/* ]] && continue
        if [ -e "$file" ] || [ -L "$file" ]; then left+="$file "; fi
    done < <(find /run/railhead/attachments /run/railhead/nccl /run/cdi /run/railhead/locks -mindepth 1 ! -type d ! \( -name '*.lock' -empty \) 2>/dev/null)
    [ -z "$left" ] || { echo "$left"; return 1; }
}
