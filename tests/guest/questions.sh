#!/bin/bash
# Runs in the guest: tests/system/faults/run.sh -b BUILD -T cabled -m 640 tests/guest/questions.sh
#
# Each command of docs/reference/questions.md prints what the page shows. The node has two rails with leaf switches,
# GPUs, a pod that runs, one that ended and one that fails to start; the cable of rail1 is cut, and a VF is drained.
# Ages, times and the width of columns may differ, and nothing else.
#
# To write the output of a run into the page, from the root of the repository:
#   tests/system/faults/run.sh -b BUILD -T cabled -m 640 -t 760 -o DIR tests/guest/questions.sh
#   cp DIR/questions.md docs/reference/questions.md
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
# shellcheck source=tests/system/faults/leaf_switches.sh
. "$SRC/tests/system/faults/leaf_switches.sh"
readonly PAGE=$SRC/docs/reference/questions.md CHECKPOINT=/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint

# ---- the node ----------------------------------------------------------------------------
write_fabric() {
    fabric '.addresses = { conflictProbeMs: 0, reuseDelaySeconds: 3600 }
        | .rails[0].vlan = 100 | .rails[1].vlan = 200
        | .rails |= [ .[] | (.subnet | rtrimstr("0/24")) as $net | . + { expectedSwitches: ("leaf" + .name[4:]), mtu: 1400, softRoce: true,
              trafficClass: 104, probeAddresses: { node0: ($net + "1") } } ]
        | . + { pools: [ range(2) | { resource: "railhead.io/rail\(.)", rails: ["rail\(.)"] } ],
            reachability: { intervalSeconds: 1, podSeconds: 1 }, health: { intervalSeconds: 1, vfSeconds: 1, link: { downAfter: 1 } } }'
}
vfs() {
    local vf
    make_vfs pf0 3 && make_vfs pf1 2 || return
    for vf in 0.0 0.1 0.2 1.0 1.1; do give_vf_mac "pf${vf%.*}" "${vf#*.}" "02:00:00:00:0${vf%.*}:0${vf#*.}" || return; done
}
start() {
    mkdir -p /etc/railhead "${CHECKPOINT%/*}" && echo '{ "accelerators": { "vendors": ["1234:0380"] } }' >/etc/railhead/topology.json || return
    switches_ready && modprobe -a rdma_rxe ib_uverbs && write_fabric && vfs || return
    # A cable joins the second ports of the leaf switches, which have no VLAN in common.
    ip link add leaf2 type veth peer name leaf3 && leaf_switch 0 100 10.100.0.254/24 && leaf_switch 1 200 10.101.0.254/24 || return
    lldpd_start 0
    lldpd_start 1
    kubelet_start && daemon_start 0 && offers rail0 3 && offers rail1 2
}
all_well() {
    railctl lldp -o json | jq -e 'all(.rails[]; .cabling == "right")' && railctl reachability -o json | jq -e 'all(.rails[]; .state == "reachable")'
}

# ---- pods --------------------------------------------------------------------------------
id_of() { sha256sum <<<"$1" | head -c 64; } # POD: of its container
uid_of() { id_of "$1" | sed -E 's/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/\1-\2-4\3-8\4-\5/'; }
given='[]'
# give POD RAIL: what kubelet does before the runtime calls ADD. Sets devices.
give() {
    allocate "$2" 1 && given=$(jq -c --arg uid "$(uid_of "$1")" --arg resource "railhead.io/$2" --arg device "${devices[0]}" '. + [
        { PodUID: $uid, ContainerName: "main", ResourceName: $resource, DeviceIDs: { "-1": [ $device ] }, AllocResp: "" } ]' <<<"$given") &&
        mkdir -p "/var/log/pods/train_$1_$(uid_of "$1")" "/var/lib/kubelet/pods/$(uid_of "$1")" && checkpoint
}
checkpoint() { jq '{ Data: { PodDeviceEntries: ., RegisteredDevices: {} }, Checksum: 1 }' <<<"$given" >"$CHECKPOINT.new" && mv "$CHECKPOINT.new" "$CHECKPOINT"; }
# attachment add|del POD INTERFACE DEVICE
attachment() {
    cnidriver "$1" -conf /etc/cni/net.d/rails.conf -id "$(id_of "$2")" -netns "/run/netns/$2" -ifname "$3" -cap "{\"deviceID\":\"$4\"}" \
        -args "IgnoreUnknown=1;K8S_POD_NAMESPACE=train;K8S_POD_NAME=$2;K8S_POD_UID=$(uid_of "$2")"
}
# pods: one runs, and another one, which had a VF before it, has ended.
pods() {
    local ended
    pod warmup-0 && pod worker-0 && give warmup-0 rail0 && ended=${devices[0]} && attachment add warmup-0 net1 "$ended" || return
    give worker-0 rail0 && attachment add worker-0 net1 "${devices[0]}" || return
    give worker-0 rail1 && attachment add worker-0 net2 "${devices[0]}" || return
    attachment del warmup-0 net1 "$ended" && release rail0 "$ended" && ip netns del warmup-0 || return
    given=$(jq -c --arg uid "$(uid_of warmup-0)" 'map(select(.PodUID != $uid))' <<<"$given") && checkpoint &&
        rm -r "/var/log/pods/train_warmup-0_$(uid_of warmup-0)" "/var/lib/kubelet/pods/$(uid_of warmup-0)"
}
# failing_pod: its ADD comes when the cable is out already.
failing_pod() {
    pod worker-1 && give worker-1 rail1 && cable w1 out && within 120 has rail1 2 Unhealthy || return
    sed -i 's/"linkTimeoutSeconds": [0-9]*/"linkTimeoutSeconds": 1/' /etc/cni/net.d/rails.conf
    ! attachment add worker-1 net1 "${devices[0]}"
}
drained_vf() { railctl drain "$(vf_pci pf0 2)" --reason 'ticket 4711' && within 60 is rail0 "$(vf_pci pf0 2)" Unhealthy; }
new_fabric() { jq '.rails[0].mtu = 1300 | .rails[1].vlan = 201' /etc/railhead/fabric.json >/root/new.json; }
# settled: what railheadd writes down of the cut cable is written.
settled() {
    railctl lldp | grep 'no carrier' && railctl reachability -o json |
        jq -e '[.rails[].state] == ["reachable", "dead"] and [.pods[].state] == ["reachable", "dead"]'
}

# ---- the page ----------------------------------------------------------------------------
# answered: the page with what its commands print now.
answered() {
    local line block='' command=''
    while IFS= read -r line; do
        [ "$block" = text ] && [ "$line" != '```' ] && continue
        printf '%s\n' "$line"
        case $line in
            '```sh') block=sh command='' ;;
            '```text') block=text && (cd /root && bash -c "$command" 2>&1 </dev/null | sed 's/ *$//') ;;
            '```') block='' ;;
            *) [ "$block" != sh ] || command+=$line$'\n' ;;
        esac
    done <"$PAGE"
}
# comparable: without what differs from run to run: times, ages, the width of columns.
comparable() { sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z/TIME/g; s/\b[0-9]+[smh]\b/AGE/g; s/ +/ /g' "$1"; }
as_documented() { diff <(comparable "$1") <(comparable "$OUT/questions.md"); }
# planted FILTER: succeeds if the comparison does not find the fault that the filter makes, or if the filter makes none.
planted() { sed -E "$1" "$PAGE" >/tmp/planted && { cmp -s /tmp/planted "$PAGE" || as_documented /tmp/planted; }; }

check 'a node with two rails and their leaf switches' start
check '... is well' within 120 all_well
[ "$failures" = 0 ] || { tail -n 30 "$OUT"/*.log; railctl status; finish; }
check 'a pod has a VF of each rail, and another pod has ended' pods
check 'the cable of rail1 is cut while a pod starts' failing_pod
check 'a VF of rail0 is drained' drained_vf
check 'a new fabric.json is to be checked' new_fabric
check 'railheadd has written down the faults' within 120 settled
[ "$failures" = 0 ] || { tail -n 30 "$OUT"/*.log; for what in status lldp reachability health; do railctl "$what"; done; finish; }

answered >"$OUT/questions.md"
questions=$(grep -c '^```sh$' "$PAGE")
check 'there are fifteen questions or more' test "$questions" -ge 15
check '... each has its output' test "$(grep -c '^```text$' "$PAGE")" = "$questions"
check '... which is that of the page' as_documented "$PAGE"
for wrong in 's/10\.100\.0\.11\b/10.100.0.12/' '/^RESOURCE /d' 's/cooling down/held/' 's/ GID / INDEX /'; do
    deny "a page with a wrong line is refused: $wrong" planted "$wrong"
done
as_documented "$PAGE" || cat "$OUT/questions.md"
finish
