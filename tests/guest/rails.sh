#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE -s cni=/usr/lib/cni tests/guest/rails.sh
#
# All devices of a pod in one call, on real VFs: chained behind the bridge plugin as a
# cluster network is, with the devices from kubelet's checkpoint; through libcni.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
readonly VFS=4 UID1=11111111-2222-3333-4444-555555555555
export CNI_PATH=/tmp/bin

mkdir -p /tmp/bin /etc/railhead /var/lib/railhead/allocations /var/lib/kubelet/device-plugins /tmp/cache
cp "$BUILD"/bin/{railhead,railhead-ipam,cnidriver} /mnt/cni/{bridge,host-local} /tmp/bin/
modprobe -a rdma_rxe ib_uverbs bridge veth || exit 1
ip link set lo up

devices=()
for pf in pf0 pf1; do
    make_vfs "$pf" "$VFS" || exit 1
    for ((vf = 0; vf < VFS; vf++)); do
        give_vf_mac "$pf" "$vf" "02:00:00:00:0${pf#pf}:0$vf" || exit 1
        devices+=("$(vf_pci "$pf" "$vf")")
    done
done

jq -n --arg node "$(uname -n)" '{ version: 1, addresses: { conflictProbeMs: 50 }, ncclConfig: { topology: "always" },
    rails: [ range(2) | { name: "rail\(.)", pf: "pf\(.)", vlan: (100 * (. + 1)), softRoce: true, mtu: 1400,
                          subnet: "10.\(. + 1)00.0.0/24", gateway: "10.\(. + 1)00.0.254", routes: ["10.0.0.0/8"],
                          nodeRanges: { ($node): "10.\(. + 1)00.0.10-10.\(. + 1)00.0.99" } } ] }' \
    >/etc/railhead/fabric.json
# What kubelet and railheadd have written by the time of ADD.
ids=$(printf '%s\n' "${devices[@]}" | jq -R . | jq -cs .)
jq -n --arg uid "$UID1" --argjson ids "$ids" '{ Data: { PodDeviceEntries: [ { PodUID: $uid, ContainerName: "train",
    ResourceName: "railhead.io/roce", DeviceIDs: { "0": $ids[:4], "1": $ids[4:] }, AllocResp: "" } ],
    RegisteredDevices: {} }, Checksum: 1 }' >/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint
for device in "${devices[@]}"; do
    jq -n --arg id "$device" --argjson all "$ids" '{ version: 1, resource: "railhead.io/roce", deviceId: $id,
        siblings: $all, generation: 1, ncclConfig: "required", deviceNodes: "cdi" }' \
        >"/var/lib/railhead/allocations/$device.json"
done
cat >/tmp/cluster.conflist <<'END'
{ "cniVersion": "1.0.0", "name": "cluster", "plugins": [
  { "type": "bridge", "bridge": "cni0", "isDefaultGateway": true,
    "ipam": { "type": "host-local", "subnet": "10.244.0.0/24" } },
  { "type": "railhead", "linkTimeoutSeconds": 120 } ] }
END

# cni VERB POD [UID]: as a runtime does.
cni() {
    /tmp/bin/cnidriver -bin /tmp/bin -cache /tmp/cache "$1" -conf /tmp/cluster.conflist -id "$2" \
        -netns "/run/netns/$2" -ifname eth0 -args "IgnoreUnknown=1;K8S_POD_UID=${3:-none}" >/tmp/result 2>/tmp/error ||
        { cat /tmp/error; return 1; }
}
# check_rails POD UID: CHECK of railhead alone, with the result of the whole chain. (The
# bridge plugin's CHECK looks for every address of the chain on its own interface.)
check_rails() {
    jq -s '.[0] * { name: "cluster", type: "railhead", prevResult: .[1].result } | del(.plugins)' \
        /tmp/cluster.conflist "/tmp/cache/results/cluster-$1-eth0" >/tmp/check.conf
    CNI_COMMAND=CHECK CNI_CONTAINERID=$1 CNI_NETNS=/run/netns/$1 CNI_IFNAME=eth0 \
        CNI_ARGS="K8S_POD_UID=$2" CNI_PATH=/tmp/bin /tmp/bin/railhead </tmp/check.conf >/tmp/error || { cat /tmp/error; return 1; }
}
# world: all that an attachment could leave behind.
world() {
    local pf
    for pf in pf0 pf1; do ip -d -j link show "$pf" | jq -c '.[0].vfinfo_list'; done
    ip -d -j link show | jq -c 'sort_by(.ifname)[] | select(.ifname | test("^cni|^veth") | not)
        | [.ifname, .address, .mtu, (.flags - ["LOWER_UP"]), .altnames, .ifalias]'
    rdma link 2>/dev/null
    find /run/railhead /run/cdi -type f ! -path '*/locks/*' ! -path '*/tenants/*' ! -name attach.log ! -name health.json ! -name lldp.json ! -name pfs.json ! -name 'observations*.jsonl' 2>/dev/null | sort
}
result() { jq -e "$@" /tmp/result; }

ip netns add pod1
ip netns add pod2
before=$(world)
check 'ADD of 8 VFs in one call' cni add pod1 "$UID1"
check 'eth0 and 8 rails in the result' result '[.interfaces[] | select(.sandbox != "" and .sandbox != null) | .name]
    == ["eth0", "rail0", "rail0-1", "rail0-2", "rail0-3", "rail1", "rail1-1", "rail1-2", "rail1-3"]'
check 'the cluster network comes first' result '.ips[0].address | startswith("10.244.")'
check 'each VF has an address of its rail' result '. as $all | [.ips[1:][] | [$all.interfaces[.interface].name[:5], .address[:6]]]
    | unique == [["rail0", "10.100"], ["rail1", "10.200"]]'
check 'addresses are 8' result '[.ips[1:][].address] | unique | length == 8'
check 'all VFs are up in the pod' test "$(ip -n pod1 -j link show up | jq '[.[] | select(.ifname // "" | startswith("rail"))] | length')" = 8
check 'VLANs are set by the PFs' test "$(ip -d -j link show pf1 | jq -c '[.[0].vfinfo_list[].vlan_list[0].vlan] | unique')" = '[200]'
conf=/run/railhead/nccl/pod1/nccl.conf
hcas=$(sed -n 's/^NCCL_IB_HCA==//p' "$conf")
check 'nccl.conf names 8 HCAs and the cluster network' test "$(tr , '\n' <<<"$hcas" | grep -c .)" = 8
check 'nccl.conf: bootstrap by eth0' grep -qx 'NCCL_SOCKET_IFNAME==eth0' "$conf"
topology=/run/railhead/nccl/pod1/topology.xml
check 'the topology file has 8 NICs' test "$(grep -c '<net name="' "$topology")" = 8
check '... which every device brings along' test "$(cat /run/cdi/railhead-*.json | jq -s --arg path "$topology" '
    [ .[].devices[].containerEdits.mounts[] | select(.hostPath == $path) | .containerPath ]
    | length == 8 and unique == ["/var/run/nvidia-topologyd/virtualTopology.xml"]')" = true
check 'each rail has its route' ip -n pod1 route get 10.200.0.254 oif rail1
check 'CHECK' check_rails pod1 "$UID1"

# The NCCL configuration and the kernel's state: compared by hand, and by railheadd.
verify() { "$BUILD/bin/railctl" nccl verify pod1 >/tmp/verdict 2>&1; }
check 'railctl nccl show' sh -c "'$BUILD/bin/railctl' nccl show pod1 >/tmp/shown"
check '... prints what is in the file' grep -qx "NCCL_IB_HCA==$hcas" /tmp/shown
check 'railctl nccl verify' verify
ip netns exec pod1 env NCCL_IB_GID_INDEX=7 sleep 3600 &
sleeper=$!
check '... sees a process that has it otherwise' within 60 sh -c "'$BUILD/bin/railctl' nccl verify pod1 |
    grep -q 'NCCL_IB_GID_INDEX=7 of process $sleeper overrides'"
check '... which is the user'"'"'s right' verify
kill "$sleeper"
# A pod's process is another user's, as those of a pod with hostUsers: false; railctl runs with what railheadd's container may.
echo 'other:x:1000:1000::/:/bin/sh' >>/etc/passwd
ip netns exec pod1 env NCCL_IB_GID_INDEX=7 busybox su other -c 'exec sleep 3600' &
sleeper=$!
is_others() { [ "$(stat -c %u "/proc/$sleeper")" = 1000 ] && grep -q sleep "/proc/$sleeper/cmdline"; }
verify_in_container() { "$BUILD/bin/with-capabilities" NET_ADMIN,NET_RAW,SYS_ADMIN "$BUILD/bin/railctl" nccl verify pod1 >/tmp/verdict 2>&1; }
check "another user's process" within 60 is_others
check '... does not keep railctl in a container from the rest' verify_in_container
check '... it names the process' grep -q "the variables of process $sleeper were not compared" /tmp/verdict
check '... which root on the host does read' verify
check '... as its variables show' grep -q "NCCL_IB_GID_INDEX=7 of process $sleeper overrides" /tmp/verdict
kill "$sleeper"
mkdir -p /tmp/kubelet
"$BUILD/bin/railheadd" --kubelet-dir /tmp/kubelet --reconcile-interval 1 >"$OUT/railheadd.log" 2>&1 &
daemon=$!
address=$(ip -n pod1 -j address show rail1-2 | jq -r '.[0].addr_info[0] | "\(.local)/\(.prefixlen)"')
ip -n pod1 address del "$address" dev rail1-2
deny 'CHECK finds a missing address' check_rails pod1 "$UID1"
check '... and names it' grep -q 'is missing on rail1-2' /tmp/error
deny 'so does verify' verify
check '... and names it' grep -q 'is missing on rail1-2' /tmp/verdict
check 'railheadd logs it' within 120 grep -q 'NICs differ from its NCCL configuration.*rail1-2' "$OUT/railheadd.log"
ip -n pod1 address add 192.0.2.1/32 dev rail1-2
ip -n pod1 address add "$address" dev rail1-2
# The kernel changes its table of GIDs some time after the address.
names_index() { ! verify && grep -q "GID index of ${address%/*} is 2, should be 1" /tmp/verdict; }
check 'an address that came again has another GID index, which verify names' within 60 names_index
check '... and railheadd' within 120 grep -q "NICs differ from its NCCL configuration.*GID index of ${address%/*}" "$OUT/railheadd.log"
ip -n pod1 address del 192.0.2.1/32 dev rail1-2
ip -n pod1 address del "$address" dev rail1-2
ip -n pod1 address add "$address" dev rail1-2
check 'it matches again' within 120 grep -q 'match its NCCL configuration again' "$OUT/railheadd.log"
kill "$daemon" && wait "$daemon"
check 'a pod without devices passes' cni add pod2 none
check '... and has only eth0' test "$(ip -n pod2 -j link show | jq '[.[] | select(.ifname != "lo")] | length')" = 1
check 'DEL of it' cni del pod2 none
check 'DEL' cni del pod1 "$UID1"
check 'DEL again' cni del pod1 "$UID1"
after=$(world)
check 'everything is as it was before' test "$after" = "$before"
[ "$after" = "$before" ] || diff <(echo "$before") <(echo "$after")

# Without a reuse delay, so that rail1 can have another subnet meanwhile.
jq '.addresses.reuseDelaySeconds = 0' /etc/railhead/fabric.json >/tmp/usual
jq '.rails[1].mtu = 1501' /tmp/usual >/tmp/fabric && cp /tmp/fabric /etc/railhead/fabric.json
deny 'ADD with an MTU above that of the PF' cni add pod1 "$UID1"
check '... names both' grep -q 'mtu 1501 is above the MTU 1500 of PF pf1' /tmp/error
check 'DEL of it' cni del pod1 "$UID1"

# The fifth device cannot be attached: the kernel refuses its address.
jq --arg node "$(uname -n)" '.rails[1] |= (del(.gateway, .routes)
    + { mtu: 1000, subnet: "fd00:200::/64", nodeRanges: { ($node): "fd00:200::10-fd00:200::99" } })' \
    /tmp/usual >/tmp/fabric && cp /tmp/fabric /etc/railhead/fabric.json
deny 'ADD with a rail that cannot be set up' cni add pod1 "$UID1"
check '... says why' grep -q 'IPv6 needs an MTU of at least 1280' /tmp/error
after=$(world)
check 'all or nothing: everything is as it was before' test "$after" = "$before"
[ "$after" = "$before" ] || diff <(echo "$before") <(echo "$after")
check 'DEL of it' cni del pod1 "$UID1"

# The pod's namespace dies without DEL; the next pod gets the same devices.
cp /tmp/usual /etc/railhead/fabric.json
check 'ADD' cni add pod1 "$UID1"
ip netns del pod1
check 'ADD of the next pod finishes what the dead one left' cni add pod2 "$UID1"
check 'DEL of the dead pod that comes late' cni del pod1 "$UID1"
check '... does not touch the next one' check_rails pod2 "$UID1"
check 'DEL of the next pod' cni del pod2 "$UID1"
after=$(world)
check 'everything is as it was before' test "$after" = "$before"
[ "$after" = "$before" ] || diff <(echo "$before") <(echo "$after")
jq -Mc '[.links, .totalUs, .phasesUs]' /run/railhead/attach.log
finish
