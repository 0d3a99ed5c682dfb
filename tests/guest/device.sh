#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE -s cni=/usr/lib/cni tests/guest/device.sh
#
# A pod with all capabilities changes everything on its NIC that can be changed there. The next pod's NIC is
# compared, field by field, with one that no pod has had. On VFs of igb and on a whole PF, which has
# what VFs lack: channels, RSS, private flags, pause, XDP in the driver. Then a pod without a NIC attacks an idle VF, from the
# host's user namespace and from one of its own.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
mkdir -p /tmp/bin /etc/railhead
cp "$BUILD"/bin/{railhead,railhead-ipam,show-device,attach-bpf} /mnt/cni/static /tmp/bin/
make_vfs pf0 2 || exit 1
for vf in 0 1; do give_vf_mac pf0 "$vf" "02:00:00:00:00:0$vf" || exit 1; done
vf0=$(vf_pci pf0 0) vf1=$(vf_pci pf0 1) pf1=$(pci_of pf1)
nic0=$(vf_netdev pf0 0) nic1=$(vf_netdev pf0 1)
ip link set lo up
pod() { ip netns add "$1" && ip -n "$1" link set lo up; }
for pod in pod1 pod2 pod3; do pod "$pod"; done
jq -n '{ version: 1, rails: [ { name: "rail0", pf: "pf0", vlan: 100 }, { name: "rail1", pf: "pf1" } ] }' \
    >/etc/railhead/fabric.json

# cni VERB POD DEVICE ADDRESS: one call; the answer is in /tmp/answer.
cni() {
    jq -n --arg device "$3" --arg address "$4" '{ cniVersion: "1.0.0", name: "net", type: "railhead", ncclConfig: "off", linkTimeoutSeconds: 120,
        deviceID: $device, ipam: { type: "static", addresses: [ { address: $address } ] } }' |
        CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/run/netns/$2 CNI_IFNAME=net1 CNI_PATH=/tmp/bin \
            /tmp/bin/railhead >/tmp/answer || { cat /tmp/answer; return 1; }
}
# in_pod POD COMMAND...
in_pod() { ip netns exec "$@"; }
# state NETDEV [POD]: all fields; what other programs say of it, too, without its name.
state() { ${2:+in_pod "$2"} /tmp/bin/show-device "$1"; }
others() {
    local run=${2:+in_pod $2} show
    # shellcheck disable=SC2086 # a command
    {
        for show in -g -k -c -a -l -x; do $run ethtool "$show" "$1" 2>&1; done
        $run tc qdisc show dev "$1"
        $run tc filter show dev "$1" ingress
        $run ip -d -j link show dev "$1" | jq -c '.[0] | [.group, .txqlen, .mtu, .promiscuity, .allmulti, .gso_max_size, .gso_max_segs,
            .gro_max_size, .gso_ipv4_max_size, .gro_ipv4_max_size, .linkmode, .broadcast, .xdp, .ifalias,
            (.flags | map(select(. == "NOARP" or . == "MULTICAST" or . == "DYNAMIC" or . == "PROMISC" or . == "ALLMULTI")))]'
    } | sed "s/\b$1\b/NIC/"
}
has() { grep -q "^$1 " /tmp/before; } # FIELD
# same WHAT FILE FILE
same() { check "$1" diff "$2" "$3"; }
# unchanged FILE FILE: the names of those fields that are the same in both.
unchanged() { sort "$1" "$2" | uniq -d | cut -d' ' -f1 | tr '\n' ' '; }

# dirty POD: by ip, tc, ethtool and bpf(2), all that a VF of igb lets one change.
dirty() {
    local in="ip -n $1 link set dev net1" features
    $in down
    $in alias dirty txqueuelen 7 mtu 1400
    $in group 7 arp off multicast off dynamic on promisc on allmulticast on mode dormant
    $in broadcast 02:02:03:04:05:06
    $in gso_max_size 30000 gso_max_segs 9 gro_max_size 20000
    $in gso_ipv4_max_size 29000 gro_ipv4_max_size 19000
    ip -n "$1" link property add dev net1 altname dirty
    in_pod "$1" ethtool -G net1 rx 128 tx 512
    in_pod "$1" ethtool -C net1 rx-usecs 400
    in_pod "$1" ethtool -s net1 msglvl 0x7ff0
    for features in sg tso gso gro rx tx; do in_pod "$1" ethtool -K net1 "$features" off; done
    in_pod "$1" tc qdisc add dev net1 root handle 7: tbf rate 1mbit burst 10kb latency 10ms
    in_pod "$1" tc qdisc add dev net1 ingress
    in_pod "$1" tc filter add dev net1 ingress protocol ip flower action drop
    in_pod "$1" /tmp/bin/attach-bpf net1 xdp
    in_pod "$1" /tmp/bin/attach-bpf net1 tcx-ingress
    in_pod "$1" /tmp/bin/attach-bpf net1 tcx-egress
    $in up
} >/tmp/dirty.log 2>&1

/tmp/bin/show-device --fields >/tmp/fields
state "$nic0" >/tmp/before
others "$nic0" >/tmp/before.others
deny 'the table has what the kernel answers' grep -vxFf /tmp/fields <(cut -d' ' -f1 /tmp/before)
state "$nic1" >/tmp/fresh
same 'two VFs are alike before' /tmp/before /tmp/fresh

check 'ADD' cni ADD pod1 "$vf0" 10.100.0.1/24
state net1 pod1 >/tmp/added
same 'the pod gets the VF as it was' /tmp/before /tmp/added
dirty pod1
state net1 pod1 >/tmp/dirty
# What no program can change on igbvf: see its ethtool_ops, and that it has neither XDP nor push.
fixed='link.proto-down pause.autoneg pause.rx pause.tx rings.rx-push rings.tx-push wake-on-lan.modes xdp.driver xdp.offload '
# Linux 5.10 has no such fields.
newer='link.gro-ipv4-max-size link.gro-max-size link.gso-ipv4-max-size rings.rx-push rings.tx-push tcx.egress tcx.ingress'
least=19 places='xdp-link tcx-ingress-link'
if ! has tcx.ingress; then
    least=14 places=xdp-link
    for field in $newer; do fixed=${fixed//$field /} && deny "no $field" has "$field"; done
fi
check "the pod has changed every other field: $(cat /tmp/dirty.log)" test "$(unchanged /tmp/before /tmp/dirty)" = "$fixed"
check "... that is $least at least" test "$(grep -cvxFf /tmp/before /tmp/dirty)" -ge "$least"
others net1 pod1 >/tmp/dirty.others
check '... as other programs see, too' test "$(grep -cvxFf /tmp/before.others /tmp/dirty.others)" -ge 20
check 'DEL' cni DEL pod1 "$vf0" 10.100.0.1/24
nic0=$(vf_netdev pf0 0)
state "$nic0" >/tmp/after
same 'all fields are as before' /tmp/before /tmp/after
others "$nic0" >/tmp/after.others
same '... and as other programs see them' /tmp/before.others /tmp/after.others
deny 'no driver was bound anew for it' grep -q reboundFor /run/railhead/attach.log

check 'the next pod gets it' cni ADD pod2 "$vf0" 10.100.0.2/24
check 'another one gets a VF that no pod had' cni ADD pod3 "$vf1" 10.100.0.3/24
state net1 pod2 >/tmp/next
state net1 pod3 >/tmp/fresh
same 'both are alike, field by field' /tmp/next /tmp/fresh
others net1 pod2 >/tmp/next
others net1 pod3 >/tmp/fresh
same '... and as other programs see them' /tmp/next /tmp/fresh
check 'its packets arrive' within 60 in_pod pod2 ping -c 1 -W 5 10.100.0.3

dirty pod2
ip netns del pod2
check 'DEL after the namespace' cni DEL pod2 "$vf0" 10.100.0.2/24
check 'DEL' cni DEL pod3 "$vf1" 10.100.0.3/24
state "$(vf_netdev pf0 0)" >/tmp/after
same 'all fields are as before' /tmp/before /tmp/after

# A link holds its program, and nobody else can detach it: the driver is bound anew.
for place in $places; do
    ip -d -j link show pf0 | jq -c '.[0].vfinfo_list' >/tmp/vfs
    ip -j link show "$(vf_netdev pf0 0)" | jq -c '.[0] | [.ifname, .address, .mtu]' >/tmp/link
    check 'ADD' cni ADD pod1 "$vf0" 10.100.0.1/24
    exec {held}< <(exec ip netns exec pod1 /tmp/bin/attach-bpf net1 "$place")
    holder=$!
    check "a program by $place" read -rt 60 -u "$held" _
    in_pod pod1 ethtool -G net1 rx 128
    check 'DEL' cni DEL pod1 "$vf0" 10.100.0.1/24
    state "$(vf_netdev pf0 0)" >/tmp/after
    same 'all fields are as before' /tmp/before /tmp/after
    same '... its name, MAC and MTU' /tmp/link <(ip -j link show "$(vf_netdev pf0 0)" | jq -c '.[0] | [.ifname, .address, .mtu]')
    same '... and what the PF says of it' /tmp/vfs <(ip -d -j link show pf0 | jq -c '.[0].vfinfo_list')
    check '... since its driver was bound anew' grep -q "\"reboundFor\":\"${place%%-*}\." /run/railhead/attach.log
    kill "$holder"
    exec {held}<&-
done

# dirty_pf POD: what a PF of igb has beyond that.
dirty_pf() {
    in_pod "$1" ethtool -L net1 combined 1
    in_pod "$1" ethtool -X net1 weight 1
    in_pod "$1" ethtool -N net1 rx-flow-hash udp4 sdfn
    in_pod "$1" ethtool --set-priv-flags net1 legacy-rx on
    in_pod "$1" ethtool -A net1 autoneg off rx off tx off
    in_pod "$1" ethtool -G net1 rx 512 tx 1024
    in_pod "$1" ethtool -C net1 rx-usecs 50
    in_pod "$1" ethtool -s net1 msglvl 0x7ff0
    in_pod "$1" ethtool -K net1 gro off rxhash off
    ip -n "$1" link set dev net1 group 9 gso_max_segs 5
    in_pod "$1" /tmp/bin/attach-bpf net1 xdp
} >/tmp/dirty.log 2>&1
ip link set pf1 up
within 60 is_up pf1
state pf1 >/tmp/before
check 'ADD of a whole PF' cni ADD pod1 "$pf1" 10.200.0.1/24
dirty_pf pod1
state net1 pod1 >/tmp/dirty
check "... and its pod attaches a program: $(cat /tmp/dirty.log)" grep -q '^xdp\..* [0-9]' /tmp/dirty
for field in link.group link.gso-max-segs private-flags.flags features.wanted channels.combined rings.rx rings.tx \
    coalesce.rx-usecs pause.autoneg debug.messages rss.table rss.udp4; do
    check "a PF has $field" grep "^$field " /tmp/before
    deny '... and the pod has changed it' grep -qxF "$(grep "^$field " /tmp/before)" /tmp/dirty
done
check 'DEL of it' cni DEL pod1 "$pf1" 10.200.0.1/24
within 60 is_up pf1
state pf1 >/tmp/after
same 'all fields of the PF are as before' /tmp/before /tmp/after

# A pod without a NIC stacks an interface on an idle VF: the netnsid of its eth0's peer is the host's namespace.
pod evil && ip link add veth0 type veth peer name eth0 netns evil && ip -n evil link set eth0 up
state "$nic1" >/tmp/idle
# stack NETDEV-OF-THE-HOST TYPE...: with the two capabilities alone.
stack() { in_pod evil "$BUILD/bin/with-capabilities" NET_ADMIN,NET_RAW ip link add link "$1" link-netnsid 0 name hidden type "${@:2}"; }
for kind in 'ipvlan mode l2' 'macvlan mode bridge' 'vlan id 0'; do
    # shellcheck disable=SC2086 # words
    check "a pod without a NIC can make a $kind on an idle VF" stack "$nic1" $kind
    deny '... which the host does not see' grep -q . <(find "/sys/class/net/$nic1/" -name 'upper_*')
    check '... and ADD gives the VF to a pod' cni ADD pod3 "$vf1" 10.100.0.3/24
    deny '... without it' ip -n evil link show hidden
    check 'DEL' cni DEL pod3 "$vf1" 10.100.0.3/24
    nic1=$(vf_netdev pf0 1)
done
state "$nic1" >/tmp/after
same 'the VF is as before' /tmp/idle /tmp/after

# The same of a pod with hostUsers: false: its network namespace belongs to a user namespace of its own.
unshare --user --map-root-user --net sleep 1000 &
confined=$!
# By its path: else busybox takes a program of its own.
in_own() { nsenter --target "$confined" --user --net "$(type -P "$1")" "${@:2}"; }
has_own() { [ "$(readlink "/proc/$confined/ns/net")" != "$(readlink /proc/self/ns/net)" ] && ip link add veth1 type veth peer name eth0 netns "$confined"; }
reaches_no_link() { ! in_own ip link add link "$nic1" link-netnsid 0 name hidden type ipvlan mode l2 2>/tmp/said && grep 'Permission denied' /tmp/said; }
check 'a pod in a user namespace of its own' within 60 has_own
check '... may administer its eth0' in_own ip link set eth0 up
check '... and stack interfaces on it' in_own ip link add link eth0 name mine type macvlan
check '... whose other end is on the host' grep -q 'link-netnsid 0' <(in_own ip link show eth0)
check '... but reaches no link there' reaches_no_link
kill "$confined"
finish
