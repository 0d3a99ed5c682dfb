#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -T isolated -b BUILD tests/guest/vfio/guest.sh
#
# VFs for programs, with a real IOMMU: made with vfio-pci as their driver, advertised, set up through their PF, and driven by a
# program that has no more than the nodes that its container is given: it hears the MAC of the pod from the PF, what it sends
# is in the rail's VLAN, and while it holds the VF nobody takes it away.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"

# ---- the node ----------------------------------------------------------------------------
# wants N: this many VFs for programs.
wants() {
    fabric '.rails[1].vlan = 200 | .provision = { atStart: false, rails: {
        rail0: { vfs: 2 }, rail1: { vfs: '"$1"', driver: "vfio-pci", mac: "derived" } } }'
}
start() {
    modprobe vfio-pci && ip link set pf0 up && ip link set pf1 up && within 60 is_up pf0 && within 60 is_up pf1 && mkdir -p /etc/pcidp || return
    wants 2
    echo '{ "resourceList": [
        { "resourcePrefix": "railhead.io", "resourceName": "dpdk", "selectors": { "pfNames": ["pf1"], "drivers": ["vfio-pci"] } },
        { "resourcePrefix": "railhead.io", "resourceName": "net", "selectors": { "pfNames": ["pf0"] } } ] }' >/etc/pcidp/config.json
    kubelet_start
}
driver_of() { basename "$(readlink "/sys/bus/pci/devices/$1/driver")"; }
group_of() { basename "$(readlink "/sys/bus/pci/devices/$1/iommu_group")"; }
are_bound() { [ "$(driver_of "$(vf_pci "$1" 0)") $(driver_of "$(vf_pci "$1" 1)")" = "$2 $2" ]; }
given() { jq -c '[.response.devices[].host_path] | sort' /tmp/allocate; }
cdi_nodes() { jq -c '[.devices[0].containerEdits.deviceNodes[].path] | sort' "/run/cdi/railhead-$1.json"; }
vf_is() { # FIELD VALUE: of pf1's VF that the pod has, as the PF says
    ip -d -j link show dev pf1 | jq -e --argjson vf "$vf" --arg field "$1" --arg value "$2" '.[0].vfinfo_list[] | select(.vf == $vf) |
        (if $field == "vlan" then .vlan_list[0].vlan // 0 else .[$field] end | tostring) == $value'
}

# ---- the program ---------------------------------------------------------------------------
# program: in the pod's network namespace, and with a /dev that has the nodes that Allocate gave and no others. $program.
program() {
    local nodes
    mapfile -t nodes < <(jq -r '.response.devices[].host_path' /tmp/allocate)
    rm -f /tmp/hold && mkfifo /tmp/hold || return
    # shellcheck disable=SC2016 # expanded there
    ip netns exec pod1 unshare --mount bash -c 'mkdir -p /tmp/dev && mount -t tmpfs tmpfs /tmp/dev && mkdir /tmp/dev/vfio || exit
        for node in "${@:2}"; do cp -a "$node" "/tmp$node" || exit; done
        mount --bind /tmp/dev /dev && exec drive-igbvf "$@"' _ "$device" "${nodes[@]}" </tmp/hold >/tmp/program.log 2>&1 &
    program=$!
    exec {hold}>/tmp/hold
    within 120 grep -qx sent /tmp/program.log || { cat /tmp/program.log; return 1; }
}
program_end() { exec {hold}>&- && wait "$program"; }

check 'a node' start
check 'VFs are made, those of rail1 for programs' railctl vfs apply
check '... by vfio-pci' are_bound pf1 vfio-pci
check '... those of rail0 are as ever' are_bound pf0 igbvf
check '... nothing is left to do' railctl vfs plan
check '... each has an IOMMU group of its own' test "$(group_of "$(vf_pci pf1 0)")" != "$(group_of "$(vf_pci pf1 1)")"
check 'railheadd' daemon_start 0 --config-file /etc/pcidp/config.json
check '... offers them' offers dpdk 2
check '... and the others' offers net 2

check 'a pod is given one' allocate dpdk 1
device=${devices[0]}
vf=0
[ "$(vf_pci pf1 1)" != "$device" ] || vf=1
check '... with the nodes of VFIO' test "$(given)" = "$(jq -nc --arg group "/dev/vfio/$(group_of "$device")" '["/dev/vfio/vfio", $group] | sort')"
pod pod1
jq '. + { mac: "02:aa:00:00:00:07" }' /etc/cni/net.d/rails.conf >/tmp/rails.conf && mv /tmp/rails.conf /etc/cni/net.d/rails.conf
check '... ADD' cni add pod1 "$device"
result=$(</tmp/check.log)
check '... says MAC and address' jq -e '.interfaces[0].mac == "02:aa:00:00:00:07" and .ips[0].address == "10.101.0.10/24"' <<<"$result"
check '... the same nodes by CDI' test "$(cdi_nodes "$device")" = "$(given)"
check '... the PF has its MAC' vf_is address 02:aa:00:00:00:07
check '... and its VLAN' vf_is vlan 200
check '... nothing is in its namespace' test "$(ip -n pod1 -j link | jq length)" = 1
check '... CHECK' cni check pod1 "$device"

check 'a program drives it, with nothing but these nodes' program
check '... the PF tells it the MAC' grep -qx 02:aa:00:00:00:07 /tmp/program.log
check '... what it sends is in the VLAN' within 60 on_wire wire-1.pcap vlan 200 and ether proto 0x88b5 and ether src 02:aa:00:00:00:07
deny '... and nowhere else' on_wire wire-1.pcap not vlan and ether src 02:aa:00:00:00:07
wants 3
deny 'while it runs the VFs are not made anew' timeout 60 railctl vfs apply
pod pod2
deny '... and no other pod gets it' cni add pod2 "$device"
check 'the program ends' program_end
check '... DEL' cni del pod1 "$device"
check '... the PF has neither VLAN' vf_is vlan 0
deny '... nor MAC' vf_is address 02:aa:00:00:00:07
check '... and nothing is left' nothing_left
release dpdk "$device"
check 'then they are' timeout 120 railctl vfs apply
check '... and advertised' offers dpdk 3

# Held, and by no pod that is known: the kernel's unbinding would wait for it.
check 'the next pod is given one' allocate dpdk 1
device=${devices[0]}
check '... whose program runs before its ADD' program
deny '... which is refused' cni add pod2 "$device"
check '... and it is said who has it' grep "used by process $program (drive-igbvf) through /dev/vfio/$(group_of "$device")" <(cni add pod2 "$device" 2>&1)
wants 2
deny 'a VF that a program has open stays' timeout 60 railctl vfs apply
check '... and it is said who has it' grep "used by process $program through /dev/vfio/$(group_of "$device")" <(timeout 60 railctl vfs apply 2>&1)
check 'the program ends' program_end
check '... then it goes' timeout 120 railctl vfs apply
check '... from what is on offer, too' offers dpdk 2
finish
