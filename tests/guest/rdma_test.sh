#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE tests/guest/rdma_test.sh
#
# railctl rdma-test with soft RoCE on real VFs: two pods that railhead has attached and a VF
# of the host on the same rail, all in one run; another node's end (by TCP, of this one);
# what it says of a wrong GID index and of a port that is down; an interrupt.
# shellcheck disable=SC2016 # jq expands its own variables
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
mkdir -p /tmp/bin /etc/railhead
cp "$BUILD"/bin/{railhead,railhead-ipam,railctl} /tmp/bin/
modprobe -a rdma_rxe ib_uverbs || exit 1
ip link set lo up
make_vfs pf0 3 || exit 1
for vf in 0 1 2; do give_vf_mac pf0 "$vf" "02:00:00:00:00:0$vf" || exit 1; done
jq -n --arg node "$(uname -n)" '{ version: 1, addresses: { conflictProbeMs: 50 },
    policy: { networks: [ { devices: "any" } ] },
    rails: [ { name: "rail0", pf: "pf0", vlan: 100, mtu: 1400, softRoce: true, subnet: "10.100.0.0/24",
               nodeRanges: { ($node): "10.100.0.10-10.100.0.99" }, trafficClass: 104 } ] }' >/etc/railhead/fabric.json

# cni VERB POD VF
cni() {
    CNI_COMMAND=$1 CNI_CONTAINERID=$2 CNI_NETNS=/run/netns/$2 CNI_IFNAME=rail0 CNI_PATH=/tmp/bin \
        CNI_ARGS="IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=$2" \
        /tmp/bin/railhead <<<'{ "cniVersion": "1.0.0", "name": "rails", "type": "railhead", "ncclConfig": "required", "linkTimeoutSeconds": 120,
            "deviceID": "'"$(vf_pci pf0 "$3")"'" }' >/tmp/answer || { cat /tmp/answer; return 1; }
}
# Little in flight: rxe starts again when an answer comes late, as under emulation it does.
gently=(--size 4096 --depth 4 --duration 1)
# rdma_test ARG...: what is measured; the answer is in /tmp/tested.
rdma_test() {
    timeout 100 /tmp/bin/railctl rdma-test "$@" >/tmp/tested 2>/tmp/error
    local status=$?
    cat /tmp/error
    return "$status"
}
tested() { jq -e "$@" /tmp/tested >/dev/null || { cat /tmp/tested; return 1; }; }
# Connections, processes and mounts: all that a test could leave.
world() {
    rdma resource show qp | grep -v 'qpn 1 ' | grep -c railctl
    grep -l railctl /proc/[0-9]*/comm 2>/dev/null | wc -l
    wc -l </proc/mounts
}

for pod in pod1 pod2; do ip netns add "$pod" && ip -n "$pod" link set lo up; done
check 'ADD of pod1' cni ADD pod1 0
check 'ADD of pod2' cni ADD pod2 1
host=$(vf_netdev pf0 2)
ip link set pf0 vf 2 vlan 100
ip link set "$host" mtu 1400
ip address add 10.100.0.200/24 dev "$host"
ip link set "$host" up
check 'soft RoCE on a VF of the host' rdma link add rxe_host type rxe netdev "$host"
before=$(world)

check 'pods and host, each with each' rdma_test "${gently[@]}" -o json default/pod1 pod2 host
check 'three tests, all of rail0' tested '.tests | length == 3 and all(.rail == "rail0")'
check 'data has moved in all' tested '.tests | all(.write.bytes > 0 and .write.gbitPerSecond > 0)'
check 'ping-pong in all' tested '.tests | all(.writeLatency.samples > 0 and .sendLatency.samples > 0
    and .writeLatency.p99Us >= .writeLatency.medianUs and .writeLatency.minUs > 0)'
check 'devices and GID indices are those of the NCCL configuration' tested --slurpfile entries <(cat /run/railhead/attachments/*/*) \
    '[$entries[].devices[0].rdma | {device: .device, gidIndex: .gidIndex}] as $handed
    | [.tests[0].fromEnd, .tests[0].toEnd | {device, gidIndex}] | sort == ($handed | sort)'
check "the rail's traffic class" tested '.tests | all(.trafficClass == 104)'
check 'the host by its address on the rail' tested '[.tests[] | select(.to == "host").toEnd.device] == ["rxe_host", "rxe_host"]'
check 'pod against pod as a part of host against pod' tested '.tests[0].partOfHost > 0'
jq -r '.tests[] | "\(.from) - \(.to): \(.write.gbitPerSecond * 1000 | round) Mbit/s, WRITE \(.writeLatency.medianUs | round) us"
    + (if .partOfHost then ", \(.partOfHost * 100 | round) % of the host" else "" end)' /tmp/tested
check 'a table' rdma_test "${gently[@]}" /run/netns/pod1 pod2 --rail rail0
check '... with its heading and a line' test "$(wc -l </tmp/tested)" = 2
check 'one rail in both directions' rdma_test "${gently[@]}" --rail rail0 --both-ways -o json pod1 pod2
check '... two tests' tested '.tests | length == 2 and .[0].from == .[1].to and .[0].to == .[1].from and all(.write.bytes > 0)'

# The other end by TCP, as on another node.
/tmp/bin/railctl rdma-test --listen 127.0.0.1:7471 --wait 60 pod2 >/tmp/listened 2>&1 &
listener=$!
listening() { ss -Hltn 'sport = :7471' | grep -q .; }
check 'an end that listens' within 60 listening
check 'pod against the listening end' rdma_test "${gently[@]}" -o json pod1 127.0.0.1:7471
check '... which is pod2' tested --arg device "$(jq -r '.devices[0].rdma.device' /run/railhead/attachments/pod2/*)" \
    '.tests[0].toEnd.device == $device'
# The same as the last part of a preflight, from the host's VF.
preflight() {
    timeout 100 /tmp/bin/railctl preflight --skip doctor --skip health --skip drained --skip rails --skip cabling --skip reachability \
        --device rxe_host -o json "$@" >/tmp/tested 2>/tmp/error
}
check 'a preflight with RDMA against the listening end' preflight --peer 127.0.0.1:7471 --min-gbit 0.0001
check '... is fit, and says what was measured' tested '.fitness == "fit" and any(.checks[]; .check == "rdma-test" and .fitness == "fit"
    and (.details | length) > 0)'
cat /tmp/tested
# Slow is not lossy: what waits in the queue is less than it holds, for soft RoCE has 128 packets on their way at most.
slow_down() { modprobe sch_tbf && tc qdisc add dev "$host" root tbf rate 3mbit burst 10k limit 400k; }
check 'a rail becomes slow' slow_down
deny '... which no preflight lets pass' preflight --peer 127.0.0.1:7471 --min-gbit 0.004
check '... and says so' tested '.fitness == "unfit" and any(.checks[]; .check == "rdma-test" and (.details[0] | contains("less than 4.0 Mbit/s")))'
cat /tmp/tested
check '... until it is well' tc qdisc del dev "$host" root
printf 'GET / HTTP/1.0\r\n\r\n' >/dev/tcp/127.0.0.1/7471
check 'a peer of another kind is refused, and said so' within 60 grep -q 'an invalid frame header' /tmp/listened
# A starting end that goes in the midst of a run, in which the other end only watches its memory:
# unless that looks at the connection, too, it goes on so for two minutes (timeout 22).
say() { printf '%b' "$(tr -d ' ' <<<"$*" | sed 's/../\\x&/g')" >&"$to"; }
go_in_a_run() {
    local device answers gid=00000000000000000000ffff0a6400c8 # 10.100.0.200, the host's VF
    device=$(jq -r '.devices[0].rdma.device' /run/railhead/attachments/pod2/*)
    answers=$((12 + 49 + ${#device} + 12 + 12)) # an endpoint, two times ready
    exec {to}<>/dev/tcp/127.0.0.1/7471 || return
    say 52485254 0001 0001 00000022 0005 7261696c30 $gid 00001000 0004 0001 16 00 00 &&
        say 52485254 0001 0002 00000031 00000011 00123456 $gid 01020304 1122334455667788 0000000000003000 0400 0000 00 &&
        say 52485254 0001 0003 00000001 02 &&
        [ "$(timeout 60 head -c "$answers" <&"$to" | wc -c)" = "$answers" ]
    local status=$?
    exec {to}>&-
    return "$status"
}
check 'a starting end that goes in the midst of a run' go_in_a_run
check '... is noticed at once' within 60 grep -q 'the other end of the test has gone' /tmp/listened
kill -INT "$listener"
wait "$listener"
check 'an interrupt ends it' grep -q '5 tests, 2 failed' /tmp/listened
# With keys: an end without one gets no answer.
(umask 077 && printf '%032x\n' 4711 >/tmp/keys)
/tmp/bin/railctl rdma-test --listen 127.0.0.1:7471 --key-file /tmp/keys pod2 >/tmp/listened 2>&1 &
listener=$!
check 'an end that listens with a key' within 60 listening
check 'pod against it with the key' rdma_test "${gently[@]}" --key-file /tmp/keys pod1 127.0.0.1:7471
deny '... and without it' rdma_test "${gently[@]}" pod1 127.0.0.1:7471
check '... which is said' grep -q -e --key-file /tmp/error
kill -INT "$listener"
wait "$listener"
deny 'nobody listens' rdma_test "${gently[@]}" pod1 127.0.0.1:7471
check '... and that is said' grep -q 'connecting to 127.0.0.1:7471: Connection refused' /tmp/error

deny 'a preflight without the peer' preflight --peer 127.0.0.1:7471
check '... could not be checked' tested '.fitness == "unknown"'

deny 'a wrong GID index' rdma_test "${gently[@]}" pod1 pod2 --gid-index 9
check '... is named' grep -q 'has no GID at index 9' /tmp/error
check '... and what there is' grep -q '::ffff:10.100.0.1[01] RoCE v2' /tmp/error
deny 'a device that is not there' rdma_test "${gently[@]}" pod1@rxe77 pod2
check '... is named' grep -q 'no RDMA device rxe77' /tmp/error
deny 'no such pod' rdma_test "${gently[@]}" pod1 pod3
check '... is named' grep -q "nothing on this node is called 'pod3'" /tmp/error
ip -n pod2 link set rail0 down
deny 'a port that is down' rdma_test "${gently[@]}" pod1 pod2
check '... is named, with its state' grep -q 'pod2: port 1 of RDMA device .* is in state down' /tmp/error
ip -n pod2 link set rail0 up

/tmp/bin/railctl rdma-test --size 4096 --depth 4 --duration 600 pod1 pod2 >/tmp/tested 2>/tmp/error &
long=$!
moving() { rdma resource show qp | grep railctl | grep -q 'state RTS'; }
check 'a long test runs' within 60 moving
kill -INT "$long"
wait "$long"
check 'an interrupt is status 1' test $? = 1
check '... and is said' grep -q 'interrupted: 0 of 1 tests' /tmp/error
after=$(world)
check 'nothing is left' test "$after" = "$before"
[ "$after" = "$before" ] || diff <(echo "$before") <(echo "$after")

check 'DEL of pod1' cni DEL pod1 0
check 'DEL of pod2' cni DEL pod2 1
finish
