#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD tests/guest/vfs.sh
#
# railctl vfs and railheadd on real SR-IOV NICs: VFs are made as fabric.json states, with
# their MACs, MTU and drivers; twice is once; a VF in a pod or elsewhere keeps its PF as it
# is; a run that was killed is finished by the next; railheadd does it when it starts.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
readonly KUBELET=/var/lib/kubelet/device-plugins
export PATH=$PATH:$BUILD/bin
mkdir -p /tmp/bin /etc/railhead "$KUBELET"
cp "$BUILD/bin/railhead" /tmp/bin/
ip netns add pod1 && ip -n pod1 link set lo up

# fabric PROVISION: fabric.json with both rails and this object.
fabric() {
    jq -n --argjson provision "$1" '{ version: 1, rails: [ range(2) | { name: "rail\(.)", pf: "pf\(.)" } ],
        pools: [ range(2) | { resource: "railhead.io/rail\(.)", rails: ["rail\(.)"], ncclConfig: "off" } ],
        policy: { networks: [ { devices: "any" } ] }, provision: $provision }' >/etc/railhead/fabric.json
}
# exits STATUS COMMAND...: with this status; what it printed is in /tmp/said.
exits() {
    local wanted=$1 status
    shift
    "$@" >/tmp/said 2>&1
    status=$?
    [ "$status" = "$wanted" ] || { cat /tmp/said; echo "exit status $status"; return 1; }
}
said() { grep -qF -- "$1" /tmp/said || { cat /tmp/said; return 1; }; }
vfs() { cat "/sys/class/net/$1/device/sriov_numvfs"; }
has_vfs() { [ "$(vfs "$1")" = "$2" ]; }
# What the VFs of a PF are: index of the netdev, MAC, MTU.
netdevs() { local i; for ((i = 0; i < $(vfs "$1"); i++)); do ip -j link show dev "$(vf_netdev "$1" "$i")" | jq -c '.[0] | [.ifindex, .address, .mtu]'; done; }
# derived PF VF: the MAC by docs/reference/kernel-interfaces.md; the PFs' OUI is 52:54:00.
derived() { local mac; mac=$(ip -j link show dev "$1" | jq -r '.[0] | .permaddr // .address'); printf '02:50:%s:%02x' "${mac:9}" "$2"; }
# macs_of PF N: PF and netdev of each VF say the derived MAC.
macs_of() {
    local i wanted
    for ((i = 0; i < $2; i++)); do
        wanted=$(derived "$1" "$i")
        [ "$(ip -d -j link show dev "$1" | jq -r ".[0].vfinfo_list[$i].address")" = "$wanted" ] || { ip -d link show dev "$1"; return 1; }
        [ "$(cat "/sys/class/net/$1/device/virtfn$i/net/"*/address)" = "$wanted" ] || { ip link; return 1; }
    done
}
mtus_are() { [ "$(cat "/sys/class/net/$1/mtu" "/sys/class/net/$1"/device/virtfn*/net/*/mtu | sort -u)" = "$2" ]; }
in_order() {
    local i before=0 index
    for ((i = 0; i < $2; i++)); do
        index=$(cat "/sys/class/net/$1/device/virtfn$i/net/"*/ifindex)
        [ "$index" -gt "$before" ] || return 1
        before=$index
    done
}
cni() {
    CNI_COMMAND=$1 CNI_CONTAINERID=pod1 CNI_NETNS=/run/netns/pod1 CNI_IFNAME=net1 CNI_PATH=/tmp/bin \
        CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=train-0' /tmp/bin/railhead <<<'{ "cniVersion": "1.0.0",
        "name": "net", "type": "railhead", "ncclConfig": "off", "linkTimeoutSeconds": 120, "ipam": {}, "deviceID": "'"$2"'" }'
}

fabric '{ "vfs": 4, "mtu": 3000, "mac": "derived", "atStart": false }'
check 'a plan says what is to be done' exits 4 railctl vfs plan
check '... and for what' said 'make 4 VFs'
check '... and touches nothing' has_vfs pf0 0
check 'four VFs on each PF' exits 0 railctl vfs apply
check '... pf0' has_vfs pf0 4
check '... pf1' has_vfs pf1 4
for pf in pf0 pf1; do
    check "$pf and its VFs have the derived MACs" macs_of "$pf" 4
    check "$pf and its VFs have the MTU" mtus_are "$pf" 3000
    check "the VFs of $pf were bound in the order of their index" in_order "$pf" 4
    check "drivers are offered new VFs of $pf as before" grep -qx 1 "/sys/class/net/$pf/device/sriov_drivers_autoprobe"
done
before=$(netdevs pf0; netdevs pf1)
check 'then nothing is to be done' exits 0 railctl vfs plan
check 'and applying does nothing' exits 0 railctl vfs apply
check '... but say so' said '4 VFs, nothing to do'
check '... the netdevs are the same' test "$(netdevs pf0; netdevs pf1)" = "$before"

check 'ADD of VF 2' cni ADD "$(vf_pci pf0 2)"
check 'a VF in a pod is no trouble while nothing is to be done' exits 0 railctl vfs plan
fabric '{ "vfs": 6, "mtu": 3000, "mac": "derived", "atStart": false }'
check 'another number is refused' exits 1 railctl vfs plan
check '... with the pod that has the VF' said 'VF 2'
check '... by name' said 'pod team/train-0 (container pod1)'
check '... also to apply, which changes the other PF' exits 1 railctl vfs apply
check '... pf0 is as it was' has_vfs pf0 4
check '... pf1 is not' has_vfs pf1 6
check 'DEL' cni DEL "$(vf_pci pf0 2)"
check 'then pf0 is changed' exits 0 railctl vfs apply
check '... by removing and making' said 'remove its 4 VFs'
check '... six VFs' has_vfs pf0 6
check '... with their MACs' macs_of pf0 6

stray=$(vf_netdev pf1 5)
ip link set "$stray" netns pod1
fabric '{ "vfs": 2, "mac": "derived", "atStart": false }'
check 'a VF in an unknown namespace is in use' exits 1 railctl vfs apply --rail rail1
check '... and named' said 'VF 5'
ip -n pod1 link set "$stray" netns 1
ip address add 192.0.2.1/24 dev "$(vf_netdev pf1 0)"
check 'one with an address of the host too' exits 1 railctl vfs apply --rail rail1
ip address flush dev "$(vf_netdev pf1 0)"
check 'free VFs go' exits 0 railctl vfs apply --rail rail1
check '... and two come' has_vfs pf1 2
check '... the other rail was not meant' has_vfs pf0 6

# A MAC that someone else has set, and a driver by name.
ip link set pf1 vf 1 mac 02:aa:00:00:00:01 && rebind_vf "$(vf_pci pf1 1)" && within 60 vf_has_netdev pf1 1
fabric '{ "mac": "derived", "rails": { "rail1": { "driver": "igbvf" } }, "atStart": false }'
check 'another MAC is found' exits 4 railctl vfs plan --rail rail1
check '... and put right without making VFs' exits 0 railctl vfs apply --rail rail1
check '... as derived' macs_of pf1 2
vf_pci pf1 0 >/sys/bus/pci/drivers/igbvf/unbind
check 'a VF without its driver' exits 4 railctl vfs plan --rail rail1
check '... gets it' exits 0 railctl vfs apply --rail rail1
check '... and nothing else may be bound to it' grep -qx igbvf "/sys/class/net/pf1/device/virtfn0/driver_override"
fabric '{ "rails": { "rail1": { "driver": "nonesuch" } }, "atStart": false }'
check 'a driver that the kernel does not have is refused' exits 1 railctl vfs apply --rail rail1
fabric '{ "vfs": 9 }'
check 'and so are more VFs than the NIC can have' exits 1 railctl vfs apply
check '... nothing was touched' macs_of pf0 6

# Killed at any moment: the next run finishes it.
fabric '{ "vfs": 3, "mac": "derived", "atStart": false }'
railctl vfs apply --rail rail0 >/dev/null 2>&1 &
victim=$!
mark=/run/railhead/provision/$(pci_of pf0)
while kill -0 "$victim" 2>/dev/null && [ ! -e "$mark" ]; do pause 0.001; done
kill -9 "$victim"
wait "$victim" 2>/dev/null
check 'a run that was killed in the middle leaves its mark' test -e "$mark"
check '... the next finishes it' exits 0 railctl vfs apply --rail rail0
check '... with three VFs' has_vfs pf0 3
check '... their MACs' macs_of pf0 3
check '... and drivers for new VFs' grep -qx 1 /sys/class/net/pf0/device/sriov_drivers_autoprobe
deny '... the mark is gone' test -e "$mark"

# railheadd at start, as after a reboot.
for pf in pf0 pf1; do echo 0 >"/sys/class/net/$pf/device/sriov_numvfs"; done
seen() { kubelet-standin devices --dir "$KUBELET" "railhead.io/$1" --timeout 1; }
has() { [ "$(seen "$1" | jq '[.[] | select(.health == "Healthy")] | length')" = "$2" ]; }
start() { railheadd >"$OUT/railheadd-$1.log" 2>&1 & daemon=$!; }
# serves N: railheadd N does. Until then kubelet may have the devices of the one before.
serves() { [ "$(grep -c '"registered with kubelet"' "$OUT/railheadd-$1.log")" -ge 2 ]; }
stop() { kill "$daemon" && wait "$daemon"; }
logged() { jq -es "map(select(.msg | test(\"$2\"))) | length == $3" "$OUT/railheadd-$1.log"; }
kubelet-standin serve --dir "$KUBELET" >"$OUT/kubelet.log" 2>&1 &
fabric '{ "vfs": 2, "mac": "derived", "rails": { "rail1": { "vfs": 3 } } }'
check 'kubelet is there' within 60 test -S "$KUBELET/control.sock"
start 1
check 'railheadd starts' within 120 serves 1
check '... makes the VFs and advertises them' within 60 has rail0 2
check '... as many as the rail overrides' within 60 has rail1 3
check '... with their MACs' macs_of pf1 3
check '... and says what it did' logged 1 'made the PF' 2
check 'railheadd ends' stop
start 2
check 'the second time it starts' within 120 serves 2
check '... and serves them' within 60 has rail1 3
check '... and has nothing to say' logged 2 'VFs' 0
check 'railheadd ends again' stop
check 'ADD' cni ADD "$(vf_pci pf0 1)"
fabric '{ "vfs": 4 }'
start 3
check 'it starts with what is refused' within 120 serves 3
check '... and serves what there is' within 60 has rail0 2
check '... with a warning' logged 3 'not changed' 1
check 'railheadd ends once more' stop
check 'DEL' cni DEL "$(vf_pci pf0 1)"
fabric '{ "vfs": "many" }'
check 'a broken object is no start' exits 3 railheadd
check '... and has its pointer' said '/provision/vfs'
finish
