#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE -s cni=/usr/lib/cni tests/guest/nccl_config.sh
#
# What NCCL gets, against a real kernel's GID tables: rails of IPv4, of IPv6 and of both, a VLAN of the
# pod's own, indices that move, NICs that disagree, GIDs that come late or never, a port that goes down.
# Data moves by what nccl.conf says, and by nothing else.
# shellcheck disable=SC2016 # jq's variables
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/nccl.sh
. "$SRC/tests/guest/nccl.sh"

# ---- the node ----------------------------------------------------------------------------
# rail0 has IPv4 addresses, rail1 IPv6 addresses; eth0 is the cluster's network.
node() {
    local pf vf
    mkdir -p /tmp/bin /etc/railhead
    cp "$BUILD"/bin/{railhead,railhead-ipam} /mnt/cni/static /tmp/bin/ || return
    modprobe -a rdma_rxe ib_uverbs 8021q bridge veth || return
    make_vfs pf0 4 && make_vfs pf1 3 || return
    for pf in pf0 pf1; do
        for vf in 0 1 2 3; do
            [ "$pf$vf" = pf13 ] || give_vf_mac "$pf" "$vf" "02:00:00:00:0${pf#pf}:0$vf" || return
        done
    done
    ip link add cni0 type bridge && ip address add 10.244.0.254/24 dev cni0 && ip link set cni0 up || return
    jq -n --arg node "$(uname -n)" '{ version: 1, addresses: { conflictProbeMs: 50 },
        policy: { networks: [ { devices: "any", ipam: ["static"] } ] },
        rails: [ { name: "rail0", pf: "pf0", vlan: 100, mtu: 1400, softRoce: true, subnet: "10.100.0.0/24",
                   nodeRanges: { ($node): "10.100.0.10-10.100.0.99" } },
                 { name: "rail1", pf: "pf1", vlan: 200, mtu: 1400, softRoce: true, subnet: "fd00:200::/64",
                   nodeRanges: { ($node): "fd00:200::10-fd00:200::99" } } ] }' >/etc/railhead/fabric.json
}
pod() { # NUMBER
    ip netns add "pod$1" && ip link add "veth$1" type veth peer name eth0 netns "pod$1" &&
        ip link set "veth$1" master cni0 up && ip -n "pod$1" -batch - <<END
link set lo up
address add 10.244.0.$1/24 dev eth0
link set eth0 up
route add default via 10.244.0.254
END
}
# cni VERB POD INTERFACE CONFIG: one call; its answer is in /tmp/answer-POD.
cni() {
    local limit='"linkTimeoutSeconds": 120, '
    [[ $4 != *linkTimeoutSeconds* ]] || limit=''
    CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/run/netns/$2 CNI_IFNAME=$3 CNI_PATH=/tmp/bin \
        CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=$2" \
        /tmp/bin/railhead <<<'{ "cniVersion": "1.0.0", "name": "rails", "type": "railhead", "ncclConfig": "required", '"$limit$4"' }' \
        >"/tmp/answer-$2" || { cat "/tmp/answer-$2"; return 1; }
}
answer() { local pod=$1; shift; jq -e "$@" "/tmp/answer-$pod" || { cat "/tmp/answer-$pod"; return 1; }; }
vf() { echo '"deviceID": "'"$(vf_pci "$1" "$2")"'"'; } # PF N
# static A...: these instead of the rail's next one.
static() { jq -cn '{ ipam: { type: "static", addresses: [ $ARGS.positional[] | { address: . } ] } }' --args "$@" | sed 's/^.//; s/.$//'; }
address_of() { # POD INTERFACE 4|6: its first address; "null": none
    ip "-$3" -n "$1" -j address show dev "$2" scope global | jq -r '[.[] | .addr_info[]?][0].local'
}
# world: all that an attachment could leave behind, or change of others'.
world() {
    local pf
    for pf in pf0 pf1; do ip -d -j link show "$pf" | jq -c '.[0].vfinfo_list'; done
    ip -d -j link show | jq -c 'sort_by(.ifname)[] | [.ifname, .address, .mtu, (.flags - ["LOWER_UP"]), .altnames, .ifalias]'
    rdma link
    find /run/railhead /run/cdi -type f ! -path '*/locks/*' ! -path '*/tenants/*' ! -name 'attach.log*' -exec sha256sum {} + 2>/dev/null | sort
}
as_before() { local now; now=$(world); [ "$now" = "$1" ] || { diff <(echo "$1") <(echo "$now"); return 1; }; } # TEXT
verify() { "$BUILD/bin/railctl" nccl verify "$@" >/tmp/verdict 2>&1 || { cat /tmp/verdict; return 1; }; }
verdict() { grep -q -- "$1" /tmp/verdict || { cat /tmp/verdict; return 1; }; }

# right POD INTERFACE ADDRESS: the GID that NCCL takes of the HCA on that interface is the address's.
right() {
    local hca index
    hca=$(hca_on "$1" "$2") && index=$(nccl_index "$1" "$hca") || { echo "no HCA of nccl.conf, or no index, is on $2"; return 1; }
    gids "$1" "$hca" | grep -qx "$index $(hex_of "$3") $2 RoCE v2" || { echo "not $3 at $index:"; gids "$1" "$hca"; return 1; }
}
index_on() { nccl_index "$1" "$(hca_on "$1" "$2")"; }                                         # POD INTERFACE
has_gid() { gids "$1" "$(hca_on "$1" "$2")" | grep -q "^[0-9]* $(hex_of "$3") $4 RoCE v2$"; } # POD INTERFACE ADDRESS NETDEV

check 'VFs on both rails, and a cluster network' node
[ "$failures" = 0 ] || finish
for i in {1..6}; do check "pod$i" pod "$i"; done
empty=$(world)

# ---- rails of one family, of the other, of both -----------------------------------------------
for i in 1 2; do
    check "pod$i: a rail with IPv4" cni ADD "pod$i" net1 "$(vf pf0 $((i - 1)))"
    check '... nccl.conf leads to its address' right "pod$i" net1 "$(address_of "pod$i" net1 4)"
    check "pod$i: a rail with IPv6 only" cni ADD "pod$i" net2 "$(vf pf1 $((i - 1)))"
    check '... has no IPv4 address' test "$(address_of "pod$i" net2 4)" = null
    check '... nccl.conf leads to its address' right "pod$i" net2 "$(address_of "pod$i" net2 6)"
    check '... and still to that of the first' right "pod$i" net1 "$(address_of "pod$i" net1 4)"
    check '... verify' verify "default/pod$i"
done
check 'pod3: a rail with both, IPv6 first, and two of IPv4' cni ADD pod3 net1 "$(vf pf0 2), $(static fd00:100::103/64 10.100.0.103/24 10.100.0.113/24)"
check '... nccl.conf leads to the first IPv4 address' right pod3 net1 10.100.0.103
check '... verify, by the path of the namespace' verify /run/netns/pod3

# ---- data --------------------------------------------------------------------------------------
host=$(vf_netdev pf0 3)
host_rail() {
    ip link set pf0 vf 3 vlan 100 && ip link set "$host" mtu 1400 && ip address add 10.100.0.200/24 dev "$host" &&
        ip link set "$host" up && rdma link add rxe_host type rxe netdev "$host" && within 60 host_ready
}
host_ready() { host_index=$(gids host rxe_host | sed -n "s/^\([0-9]*\) $(hex_of 10.100.0.200) .*/\1/p") && [ -n "$host_index" ]; }
check 'a VF of the host on the same rail' host_rail
check 'RDMA by IPv4: host to pod2' moves host "rxe_host $host_index" pod2 net1
from_host=$rate
check 'RDMA by IPv4: pod1 to pod2' moves pod1 net1 pod2 net1
# Under emulation one run differs from the next several times over.
echo "      pod to pod $rate MB/s, host to pod $from_host MB/s: $(jq -n "$rate / $from_host * 100 | round") %"
check 'RDMA by IPv6: pod1 to pod2' moves pod1 net2 pod2 net2
check 'RDMA by the IPv4 of both families: pod3 to pod2' moves pod3 net1 pod2 net1
rdma link delete rxe_host
ip link set "$host" down
ip address flush dev "$host"
ip link set "$host" mtu 1500
ip link set pf0 vf 3 vlan 0

# ---- indices that move ---------------------------------------------------------------------------
rail1=$(address_of pod1 net2 6)
hca=$(hca_on pod1 net2)
ip -n pod1 address del "$rail1/64" dev net2
ip -n pod1 address add fd99::1/64 dev net2 nodad
check 'another address takes the place of an IPv6 address' within 60 has_gid pod1 net2 fd99::1 net2
ip -n pod1 address add "$rail1/64" dev net2 nodad
check '... which comes back behind it' within 60 has_gid pod1 net2 "$rail1" net2
deny '... verify sees it' verify default/pod1
check '... names the NIC, both indices, and the network' verdict "rails@net2: $hca: GID index of $rail1 is 2, should be 1"
deny '... and not the other NIC' verdict rails@net1
deny '... RDMA does not reach the address any more' right pod1 net2 "$rail1"
ip -n pod1 address del fd99::1/64 dev net2
ip -n pod1 address del "$rail1/64" dev net2
ip -n pod1 address add "$rail1/64" dev net2 nodad
check '... and back as it was' within 60 verify default/pod1

# ---- a VLAN of the pod's own -----------------------------------------------------------------------
ip -n pod3 link add link net1 name net1.7 type vlan id 7
ip -n pod3 address add 10.7.0.1/24 dev net1.7
ip -n pod3 link set net1.7 up
check 'a VLAN that the pod makes has GIDs of the same HCA' within 60 has_gid pod3 net1 10.7.0.1 net1.7
check '... nccl.conf leads to the address still' right pod3 net1 10.100.0.103
check '... verify' verify pod3
check '... RDMA' moves pod3 net1 pod2 net1
ip -n pod3 address del 10.100.0.103/24 dev net1
ip -n pod3 address add 10.100.0.103/32 dev net1.7
check '... has a GID of the address that the NIC has lost' within 60 has_gid pod3 net1 10.100.0.103 net1.7
deny '... which is no stand-in' verify pod3
check '... as is said' verdict 'no RoCE v2 GID of 10.100.0.103 on net1'
ip -n pod3 link del net1.7
check 'DEL of pod3' cni DEL pod3 net1 "$(vf pf0 2)"

# ---- NICs that disagree ----------------------------------------------------------------------------
# The kernel lists IPv6 addresses from the last one to the first, so the first of two is not at the first index.
before=$(world)
check 'pod4: a rail with one IPv6 address' cni ADD pod4 net1 "$(vf pf0 2), $(static fd00:100::104/64)"
check '... a rail with two, one of which is far away' cni ADD pod4 net2 "$(vf pf1 2), $(static fd00:200::104/64 fd99::104/64)"
sed 's/^/      /' /run/railhead/nccl/pod4/nccl.conf
check '... NCCL has to search' test "$(nccl_value pod4 NCCL_IB_GID_INDEX) $(nccl_value pod4 NCCL_IB_ADDR_FAMILY)" = '-1 AF_INET6'
check '... and finds the address of the one' right pod4 net1 fd00:100::104
check '... and of the other' right pod4 net2 fd00:200::104
check '... at another index each' test "$(index_on pod4 net1) $(index_on pod4 net2)" = '1 2'
check '... verify' verify pod4
check '... RDMA by what it finds' moves pod4 net2 pod2 net2
ip -n pod4 address del fd99::104/64 dev net2
ip -n pod4 address add fd00:200::144/64 dev net2 nodad
check '... an address that fits comes before it' within 60 has_gid pod4 net2 fd00:200::144 net2
deny '... verify sees that NCCL would take that' verify pod4
check '... and says so' verdict "$(hca_on pod4 net2): the GID index that NCCL finds is 1 (fd00:200::144), should be 2"
check '... DEL of the second' cni DEL pod4 net2 "$(vf pf1 2), \"ipam\": { \"type\": \"static\" }"
first=$(world)
refused() { # WHAT CONFIG: as the pod's second NIC
    deny "$1" cni ADD pod4 net2 "$2"
    jq -r '"      " + .msg' /tmp/answer-pod4
    check '... says what is at which index' answer pod4 '.msg | test("different GID indices: .* 1, .* 2")'
    check '... and has both tables' answer pod4 '.details | test("where fd00:100::104 is meant") and test("where fd00:200::104 is meant")
        and test("index 2: fd00:200::104 RoCE v2 net2")'
    check '... leaves nothing, and the first NIC alone' as_before "$first"
}
refused 'two, which no search can tell apart' "$(vf pf1 2), $(static fd00:200::104/64 fd00:200::144/64)"
check '... the other address among them' answer pod4 '.details | test("index 1: fd00:200::144")'
check 'DEL of the first' cni DEL pod4 net1 "$(vf pf0 2), \"ipam\": { \"type\": \"static\" }"
check 'pod4 is as before' as_before "$before"

# ---- a port that is down, GIDs that come late or never ---------------------------------------------
# Of a VF without carrier ADD has made everything but the RDMA device; what its address is then is the test's.
prepared() { ip -n "$1" rule | grep -q 'oif net1'; } # POD
lose_address() { within 60 prepared "$1" && ip -n "$1" address del "$2" dev net1; } # POD ADDRESS
# Each VF hears of it by itself, and its RDMA device after it.
pf_down() { ip link set pf0 down && within 60 no_carrier pod1 && within 60 no_carrier pod2 && within 60 ports_down; }
ports_down() { [ "$(rdma link | grep -c '^link rxe_pf0v[01]/1 state DOWN ')" = 2 ]; }
pf_up() { ip link set pf0 up && within 60 is_up pf0; }
no_carrier() { ip -n "$1" -j link show dev net1 | jq -e '.[0].flags | index("NO-CARRIER")'; }
has_rxe() { rdma link | grep -q "^link rxe_$1/1 "; }

before=$(world)
check 'the PF of a rail goes down' pf_down
deny '... verify sees it of a pod with a VF of it' verify pod1
check '... names the interface' verdict 'rails@net1: net1 has no carrier'
check '... and the port' verdict 'port 1 is not ACTIVE'
deny '... and not the other rail' verdict rails@net2
down=$(world)
deny '... ADD waits in vain' cni ADD pod3 net1 "$(vf pf0 2), \"linkTimeoutSeconds\": 1"
check '... and says why' answer pod3 '(.msg | test("no carrier after 1 s")) and (.details | test("the PF pf0 is down"))'
check '... leaves nothing' as_before "$down"
cni ADD pod5 net1 "$(vf pf0 2), $(static 10.100.0.105/24), \"linkTimeoutSeconds\": 200" &
late=$!
cni ADD pod6 net1 "$(vf pf0 3), $(static 10.100.0.106/24), \"linkTimeoutSeconds\": 90" &
never=$!
check 'an ADD whose address goes while it waits' lose_address pod5 10.100.0.105/24
check '... and another one' lose_address pod6 10.100.0.106/24
check 'the PF is up again' pf_up
for i in 1 2; do check "... verify of pod$i, that was there" within 60 verify "pod$i"; done
check '... the first ADD has made the RDMA device' within 60 has_rxe pf0v2
check '... and waits for the GID' kill -0 "$late"
began=${EPOCHREALTIME/./}
ip -n pod5 address add 10.100.0.105/24 dev net1
check '... goes on when it comes' wait "$late"
echo "      $(((${EPOCHREALTIME/./} - began) / 1000)) ms later"
check '... hands its index over' right pod5 net1 10.100.0.105
# After that ADD, whose time would pass meanwhile.
check "the other pods' data moves" moves pod1 net1 pod2 net1
deny 'the second ADD waits as long as configured' wait "$never"
check '... and says what is missing' answer pod6 '.msg | test("no RoCE v2 GID of 10.100.0.106 on net1")'
check '... and what is there' answer pod6 '.details | test("index 0: fe80::")'
check 'DEL of the first' cni DEL pod5 net1 "$(vf pf0 2), \"ipam\": { \"type\": \"static\" }"
check '... which leaves as little as the second' as_before "$before"

for i in 1 2; do
    for nic in 0 1; do check "DEL of pod$i net$((nic + 1))" cni DEL "pod$i" "net$((nic + 1))" "$(vf "pf$nic" $((i - 1)))"; done
done
check 'the node is as it was before the first pod' as_before "$empty"
finish
