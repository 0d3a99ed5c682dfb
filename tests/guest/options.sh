#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE -s cni=/usr/lib/cni tests/guest/options.sh
#
# Options of one attachment on real VFs and PFs: tuning, address conflicts, the gateway
# check, a pod that hides its VF, settings that a driver refuses, a whole PF in a pod, a VF that is handed out
# before its last pod's DEL, two repeats of the announcement.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
mkdir -p /tmp/bin /etc/railhead
cp "$BUILD"/bin/{railhead,railhead-ipam} /mnt/cni/static /tmp/bin/
make_vfs pf0 2 || exit 1
for vf in 0 1; do give_vf_mac pf0 "$vf" "02:00:00:00:00:0$vf" || exit 1; done
vf0=$(vf_pci pf0 0) vf1=$(vf_pci pf0 1) pf1=$(pci_of pf1)
ip link set lo up
for pod in pod1 pod2; do ip netns add "$pod" && ip -n "$pod" link set lo up; done
jq -n '{ version: 1, rails: [ { name: "rail0", pf: "pf0", vlan: 100 }, { name: "rail1", pf: "pf1" } ] }' \
    >/etc/railhead/fabric.json

# cni VERB POD CONFIG: one call; the answer is in /tmp/answer. On a busy machine an emulated NIC has a carrier late.
cni() {
    local limit='"linkTimeoutSeconds": 120, ' config
    [[ $3 != *linkTimeoutSeconds* ]] || limit=''
    config='{ "cniVersion": "1.0.0", "name": "net", "type": "railhead", "ncclConfig": "off", '$limit$3' }'
    [ "$1" != CHECK ] || config=$(jq --slurpfile added "/tmp/added-$2" '.prevResult = $added[0]' <<<"$config")
    CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/run/netns/$2 CNI_IFNAME=net1 CNI_PATH=/tmp/bin \
        /tmp/bin/railhead <<<"$config" >/tmp/answer || { cat /tmp/answer; return 1; }
    [ "$1" != ADD ] || cp /tmp/answer "/tmp/added-$2"
}
# address A...: "ipam" with these.
address() { jq -cn '{ ipam: { type: "static", addresses: [ $ARGS.positional[] | { address: . } ] } }' --args "$@" | sed 's/^.//; s/.$//'; }
world() {
    ip -d -j link show pf0 | jq -c '.[0].vfinfo_list'
    ip -d -j link show | jq -c 'sort_by(.ifname)[] | [.ifname, .address, .mtu, .txqlen, .promiscuity, .allmulti,
        (.flags - ["LOWER_UP"]), (.altnames // [] | sort), .ifalias]'
    find /run/railhead /run/cdi -type f ! -path '*/locks/*' ! -path '*/tenants/*' ! -name 'attach.log*' 2>/dev/null | sort
}
# as_before TEXT: the host is what it was.
as_before() { local now; now=$(world); [ "$now" = "$1" ] || { diff <(echo "$1") <(echo "$now"); return 1; }; }
answer() { jq -e "$@" /tmp/answer || { cat /tmp/answer; return 1; }; }
link() { ip -d -n "$1" -j link show dev net1 | jq -e ".[0] | $2"; }

ip link property add dev "$(vf_netdev pf0 0)" altname net1
before=$(world)
tuned='"deviceID": "'$vf0'", "mtu": 1400, "txQLen": 777, "promisc": true, "allmulti": true, "alias": "job 7",
    "altNames": ["fast"], "max_tx_rate": 200, "spoofchk": "off", "trust": "on", "vlan": 7, "vlanQoS": 3,
    "sysctl": { "net.ipv4.conf.IFNAME.arp_filter": "1" }, '$(address 10.100.0.77/24 fd00::77/64)
check 'ADD with all settings' cni ADD pod1 "$tuned"
check 'MTU, txQLen, alias' link pod1 '.mtu == 1400 and .txqlen == 777 and .ifalias == "job 7"'
check 'promisc, allmulti' link pod1 '(.flags | index("PROMISC") != null and index("ALLMULTI") != null)'
check 'altName' ip -n pod1 link show dev fast
check 'sysctl' grep -qx 1 <(ip netns exec pod1 cat /proc/sys/net/ipv4/conf/net1/arp_filter)
check 'VF settings through the PF' test "$(ip -d -j link show pf0 | jq -c '.[0].vfinfo_list[0]
    | [.vlan_list[0].vlan, .vlan_list[0].qos, .rate.max_tx, .spoofchk, .trust]')" = '[7,3,200,false,true]'
check 'CHECK' cni CHECK pod1 "$tuned"
ip -n pod1 link set net1 alias other txqueuelen 5
deny 'CHECK finds what changed' cni CHECK pod1 "$tuned"
check '... both of it' answer '.msg | test("alias") and test("txQLen")'
ip -o monitor link >/tmp/heard &
monitor=$!
heard() { grep -Eq "^[0-9]+: $1[:@]" /tmp/heard; }
hears() { ip link set lo mtu 65535 && ip link set lo mtu 65536 && heard lo; }
check 'the host hears of links' within 60 hears
check 'DEL' cni DEL pod1 "$tuned"
check '... the host hears of the VF under its own name' within 60 heard "$(vf_netdev pf0 0)"
deny '... and not under the name of the pod' heard net1
kill "$monitor"
check 'all settings are as before, its alternative name too' as_before "$before"

check 'ADD for a pod that hides its VF' cni ADD pod1 "$tuned"
hide() {
    ip -n pod1 link set net1 down && ip -n pod1 link set net1 name hidden address 02:00:00:00:99:99 &&
        ip -n pod1 link add net1 address 02:00:00:00:00:00 type veth peer name far
}
check '... behind a veth of its name and MAC, under others' hide
check 'DEL finds it by its device' cni DEL pod1 "$tuned"
check '... and restores it' as_before "$before"
check 'the veth stays with its pod' ip -n pod1 link del net1

one='"deviceID": "'$vf0'", "vlan": 100, '$(address 10.100.0.77/24 fd00::77/64)
spoofchk_is() { [ "$(ip -d -j link show pf0 | jq -c '.[0].vfinfo_list[0].spoofchk')" = "$1" ]; }
check "the VF's spoofchk is off on the host" ip link set pf0 vf 0 spoofchk off
off=$(world)
check 'ADD' cni ADD pod1 "$one"
check '... switches it on for the pod' spoofchk_is true
check 'CHECK' cni CHECK pod1 "$one"
check 'DEL' cni DEL pod1 "$one"
check '... puts it back' as_before "$off"
check '... as the driver has it at first' ip link set pf0 vf 0 spoofchk on
other='"deviceID": "'$vf1'", "vlan": 100, '
probing="$other\"conflictProbeMs\": 5000, "  # the most that it takes: it ends with the answer
check 'ADD of the first pod' cni ADD pod1 "$one"
deny 'the same IPv4 address on another VF is refused' cni ADD pod2 "$probing$(address 10.100.0.77/24)"
check '... with code 106 and the MAC of the other' answer '.code == 106 and (.msg | test("02:00:00:00:00:00"))'
deny 'the same IPv6 address is refused' cni ADD pod2 "$probing$(address fd00::77/64)"
check '... with code 106 and the MAC of the other' answer '.code == 106 and (.msg | test("02:00:00:00:00:00"))'
check 'another VLAN is another network' cni ADD pod2 "${other/100/200}$(address 10.100.0.77/24)"
check 'DEL of it' cni DEL pod2 "$other\"ipam\": {}"
check 'other addresses are fine' cni ADD pod2 "$other$(address 10.100.0.78/24 fd00::78/64)"
check 'the pods reach each other' within 60 ip netns exec pod2 ping -c 1 -W 5 10.100.0.77
check '... by IPv6' within 60 ip netns exec pod2 ping -c 1 -W 5 fd00::77
check 'DEL of the second' cni DEL pod2 "$other\"ipam\": {}"

deny 'requireGateway without a gateway' cni ADD pod2 \
    "$other"'"gateway": "10.100.0.99", "requireGateway": true, "linkTimeoutSeconds": 30, '"$(address 10.100.0.78/24)"
check '... names it' answer '.code == 11 and (.msg | test("10.100.0.99"))'
check 'requireGateway with one' cni ADD pod2 \
    "$other"'"gateway": "10.100.0.77", "requireGateway": true, '"$(address 10.100.0.78/24)"
check 'DEL' cni DEL pod2 "$other\"ipam\": {}"

deny '802.1ad, which igb has not' cni ADD pod2 "${other/100/5}"'"vlanProto": "802.1ad", "ipam": {}'
check '... names the VF and the setting' answer '.msg | test("VF 1 of pf0") and test("(?i)vlan")'

# kubelet gives the device to pod2 while pod1's DEL has not come.
deny 'a device in use is refused in the end' cni ADD pod2 "${one/77/79}, \"previousDelTimeoutSeconds\": 0"
check '... with code 11' answer '.code == 11'
cni ADD pod2 "${one//77/79}, \"previousDelTimeoutSeconds\": 150" &
waiting=$!
within 60 grep -q . "/proc/$waiting/children" 2>/dev/null || true
check 'DEL of the first pod, late' cni DEL pod1 "$one"
check 'ADD has waited for it' wait "$waiting"
check 'a second DEL of the first pod' cni DEL pod1 "$one"
check '... leaves the next pod alone' link pod2 '.operstate == "UP"'
check 'DEL' cni DEL pod2 "$one"

ip link set pf1 up mtu 1450 alias 'the PF'
within 60 is_up pf1
before=$(world)
whole='"deviceID": "'$pf1'", "mtu": 1300, '$(address 10.200.0.5/24)
check 'a whole PF' cni ADD pod1 "$whole"
check '... is in the pod' link pod1 '.mtu == 1300'
check '... and not on the host' test ! -e /sys/class/net/pf1
check 'DEL of it' cni DEL pod1 "$whole"
within 60 is_up pf1
check 'the PF is back with its settings' as_before "$before"
# A journal entry that cannot be read: the way out brings the VF back.
vlan_is() { ip -d -j link show pf0 | jq -e --argjson vlan "$1" '.[0].vfinfo_list[0] | (.vlan_list[0].vlan // 0) == $vlan'; }
entry=/run/railhead/attachments/pod1/net@net1.json
check 'ADD' cni ADD pod1 "$one"
cp "$entry" /tmp/entry && head -c 700 /tmp/entry >"$entry"
deny 'DEL of an entry that cannot be read' cni DEL pod1 "$one"
check '... says how to restore it' answer '.details | test("railctl journal restore")'
deny 'railctl journal list says that not all is well' "$BUILD/bin/railctl" journal list
deny 'railctl journal show, too' "$BUILD/bin/railctl" journal show "$vf0"
deny 'restore takes nothing from a pod that may run' "$BUILD/bin/railctl" journal restore "$vf0"
check '... the VF is still there' link pod1 '.operstate == "UP"'
check 'restore by force' "$BUILD/bin/railctl" journal restore --force "$vf0"
check '... the VF is on the host' within 60 vf_has_netdev pf0 0
check '... without its VLAN' vlan_is 0
check '... railctl journal list has nothing' "$BUILD/bin/railctl" journal list
check 'DEL succeeds' cni DEL pod1 "$one"
check 'the next pod gets the VF' cni ADD pod2 "$one"
check '... in its VLAN' vlan_is 100
check 'DEL' cni DEL pod2 "$one"
finish
