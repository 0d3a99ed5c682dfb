#!/bin/bash
# kubectl_railhead.sh - what manifests/kubectl-railhead makes of 40 nodes: tables, exit statuses, how many are asked at
# once, nodes that do not answer, and a bundle without secrets; with each shell that is here.
#
# usage: kubectl_railhead.sh RAILCTL
# kubectl is a stand-in (stand_in.sh). RAILCTL runs with a small tree of files as its node.
# exit status: 0 all held
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
plugin=$(cd "$here/../../.." && pwd)/manifests/kubectl-railhead
RAILCTL=$(realpath "$1")
PLANTED=plantedSecretValue PROBE_KEY=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
export RAILCTL PLANTED PROBE_KEY

fail() { printf 'kubectl_railhead.sh (%s): %s\n' "${shell[*]}" "$*" >&2; exit 1; }

# A healthy node as railctl prints it, with keys in its order.
healthy() { # NODE
    cat <<END
{
  "node": "$1",
  "verdict": "ok",
  "rails": 2,
  "devices": 16,
  "free": 15,
  "inUse": 1,
  "pods": 1,
  "findings": [
    {
      "check": "fabric",
      "severity": "fine",
      "details": []
    }
  ]
}
END
}

write() { # PATH TEXT: of the real railctl's node
    mkdir -p "$PLAYED/root${1%/*}"
    printf '%s\n' "$2" >"$PLAYED/root$1"
}
# A PF with two VFs and a GPU behind one bridge.
make_node() {
    local pci=/sys/devices/pci0000:40/0000:40:01.0 at value
    for at in 0000:43:00.0=0x020000 0000:43:00.1=0x020000 0000:43:00.2=0x020000 0000:44:00.0=0x030200; do
        write "$pci/${at%=*}/class" "${at#*=}"
        write "$pci/${at%=*}/vendor" "$([[ $at == *44:* ]] && echo 0x10de || echo 0x15b3)"
        write "$pci/${at%=*}/device" 0x1021
        write "$pci/${at%=*}/numa_node" 0
        mkdir -p "$PLAYED/root/sys/bus/pci/devices"
        ln -s "../../../devices/pci0000:40/0000:40:01.0/${at%=*}" "$PLAYED/root/sys/bus/pci/devices/${at%=*}"
    done
    for value in 1 2; do
        ln -s ../0000:43:00.0 "$PLAYED/root$pci/0000:43:00.$value/physfn"
        ln -s "../0000:43:00.$value" "$PLAYED/root$pci/0000:43:00.0/virtfn$((value - 1))"
    done
    write "$pci/0000:43:00.0/sriov_totalvfs" 8
    write "$pci/0000:43:00.0/sriov_numvfs" 2
    write "$pci/0000:43:00.0/net/ens1f0/carrier" 1
    write "$pci/0000:43:00.0/infiniband/mlx5_0/node_type" 1
    write /etc/railhead/node-name gpu-00
    write /etc/railhead/fabric.json '{"version": 1, "rails": [{"name": "rail0", "pf": "ens1f0", "vlan": 100}]}'
}

# What railctl fabric suggest -o json prints on a node with one rail.
observed() { # NODE MTU
    cat <<END
{
  "version": 1,
  "observations": [
    {
      "node": "$1",
      "time": "2026-01-01T00:00:00Z",
      "accelerators": 0,
      "pfs": [
        {
          "device": "0000:43:00.0", "netdev": "ens1f0", "rdmaDevice": "mlx5_0", "rdma": true, "linkType": "ether",
          "vfs": 4, "mostVfs": 8, "inHostNetns": true, "up": true, "carrier": true, "mtu": $2,
          "networks": [ { "netdev": "ens1f0", "addresses": [ "10.100.0.1${1#gpu-}/16" ] } ]
        }
      ]
    }
  ],
  "guesses": [],
  "contradictions": []
}
END
}

pod() { printf '%s|railhead|railheadd-%s|%s|%s|%s|10.0.0.%d\n' "$1" "${5:-$1}" "${2:-Running}" "${3:-true}" "${4:-}" 7; }
# 40 nodes: all are healthy but the real one, gpu-00.
begin() {
    rm -rf "$PLAYED"
    mkdir -p "$PLAYED"/{answers,errors,statuses,running}
    : >"$PLAYED/slow"
    make_node
    local i node
    for i in $(seq -f %02g 0 39); do
        node=gpu-$i
        echo "$node" >>"$PLAYED/nodes"
        pod "$node" >>"$PLAYED/pods"
        [ "$node" = gpu-00 ] || healthy "$node" >"$PLAYED/answers/$node.status"
    done
}

# run STATUS WORD...: the plugin, which has to end with that status. $out and $err are what it prints.
run() {
    local wanted=$1 status=0
    shift
    : >"$PLAYED/counts"
    : >"$PLAYED/began"
    PATH=$tools$PATH "${shell[@]}" "$plugin" "$@" >"$work/out" 2>"$work/err" || status=$?
    out=$(cat "$work/out") err=$(cat "$work/err")
    [ "$status" = "$wanted" ] || fail "$* ended with $status, and not $wanted: $out $err"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "$* left files: $(ls "$TMPDIR")"
}
has() { [[ $out == *"$1"* ]] || fail "no '$1' in: $out $err"; }
hasnt() { [[ $out != *"$1"* ]] || fail "'$1' is in: $out"; }
complains() { [[ $err == *"$1"* ]] || fail "no '$1' in the errors: $err"; }
row() { grep -E "^$1\$" "$work/out" >/dev/null || fail "no row '$1' in: $out $err"; }
rows() { [ "$(wc -l <"$work/out")" = "$1" ] || fail "not $1 lines: $out"; }
valid_json() { python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out" || fail "it is not JSON: $out"; }
most() { sort -n "$PLAYED/counts" | tail -n 1; }

test_status() {
    begin
    run 1 status
    rows 41
    row 'NODE +VERDICT +RAILS +DEVICES +FREE +IN USE +FIRST FAULT'
    row 'gpu-00 +BROKEN +1 +[0-9]+ +[0-9]+ +[0-9]+ +[a-z]+: .+'
    row 'gpu-39 +OK +2 +16 +15 +1 +-'
    # The header and the rows have the same columns.
    [ "$(awk '{ print index($0, $2) }' "$work/out" | sort -u | wc -l)" = 1 ] || fail "the columns are not aligned: $out"
    run 0 status --node gpu-01 --node gpu-02
    rows 3
    run 1 status -o json
    valid_json
    python3 - "$work/out" <<'END' || fail "not the expected JSON: $out"
import json, sys
nodes = json.load(open(sys.argv[1]))["nodes"]
assert len(nodes) == 40
assert nodes[0]["node"] == "gpu-00" and nodes[0]["report"]["verdict"] == "broken" and nodes[0]["answered"]
assert nodes[0]["pod"] == "railhead/railheadd-gpu-00"
END
}

test_no_answer() {
    begin
    sed -i '11,$d' "$PLAYED/nodes" "$PLAYED/pods"
    echo gpu-05 >>"$PLAYED/slow"
    sed -i '/^gpu-00|/d; s/^gpu-07|.*/gpu-07|railhead|railheadd-gpu-07|Pending|||/' "$PLAYED/pods"
    # The pod that ends, and its successor, which is not ready yet; and a node without the label.
    pod gpu-03 Running true 2026-01-01T00:00:00Z ended >>"$PLAYED/pods"
    pod other-1 >>"$PLAYED/pods"
    healthy other-1 >"$PLAYED/answers/other-1.status"
    # Few nodes, and long enough for all others on a busy machine.
    run 0 status --timeout 10
    rows 12
    row 'gpu-00 +no answer +- +- +- +- +no railheadd pod is on this node'
    row 'gpu-05 +no answer +- +- +- +- +no answer in 10 s'
    row 'gpu-07 +no answer +- +- +- +- +pod railheadd-gpu-07 is Pending'
    row 'gpu-03 +OK .*'
    row 'other-1 +OK .*'
    complains '3 of 11 nodes did not answer'
    [ "$(wc -l <"$PLAYED/began")" = 8 ] || fail "not 8 nodes were asked"
    run 1 status --strict --node gpu-01 --node gpu-07
    run 3 status --timeout 1 --node gpu-05
    : >"$PLAYED/slow"
    run 0 status -l pool=a
    hasnt other-1
    grep -- '-l pool=a' "$PLAYED/calls" >/dev/null || fail "the selector was not passed on"
}

test_parallel() {
    begin
    local limit
    # The last one shows that the stand-in would see more than 32.
    for limit in 32 3 40; do
        echo "$limit" >"$PLAYED/wait_for"
        if [ "$limit" = 32 ]; then run 1 status; else run 1 status --parallel "$limit"; fi
        rows 41
        hasnt 'no answer'
        [ "$(most)" = "$limit" ] || fail "$(most) ran at once, and not $limit"
    done
}

test_failures() {
    begin
    run 2
    run 2 frobnicate
    complains "there is no command 'frobnicate'"
    run 2 status --nonsense
    run 2 status --parallel 0
    run 2 status --timeout x
    run 2 status -o yaml
    run 2 status extra
    run 2 status --node gpu-01 -l a=b
    run 2 status --node ../gpu-01
    run 2 status -n
    run 2 status --rail rail0
    run 2 status --switch leaf7
    run 2 lldp rail0
    run 2 lldp --switch 'leaf 7'
    run 2 reachability --key-file /keys
    run 2 describe
    run 2 describe rail0 rail1
    run 2 describe 'x;y'
    run 2 describe rail0 --rail rail0
    run 2 test gpu-01
    run 2 test gpu-01 gpu-01
    run 2 fabric
    run 2 bundle -o json
    run 2 exec gpu-01 health
    complains 'exec NODE -- COMMAND'
    run 2 exec gpu-01 --
    run 2 exec -- health
    run 2 exec gpu-01 gpu-02 -- health
    run 2 exec gpu-01 --node gpu-02 -- health
    run 2 status -- gpu-01
    run 2 -- status
    run 2 why
    run 2 why worker-0
    run 2 why train/worker-0/main
    run 2 why train/worker-0 -l a=b
    run 2 undrain
    run 2 drain rail0 gpu-01 -l a=b
    run 2 drain 'rail0;x'
    run 2 drain --reason text
    run 2 drain rail0 --reason $'two\nlines'
    run 2 drain rail0 --force
    run 2 undrain rail0 --reason text
    run 2 status --force
    [ ! -f "$PLAYED/calls" ] || fail "kubectl was called for a wrong command line"
    run 0 --help
    has 'Exit status:'
    # The page has the options of the help, and no others.
    local page=$here/../../../docs/reference/kubectl-railhead.md
    diff <(grep -oE -- '--[a-z][a-z-]*' <<<"$out" | sort -u) \
        <(sed -n '/^## Options/,/^## Exit/p' "$page" | grep -oE -- '--[a-z][a-z-]*' | sort -u) >&2 || fail "$page has other options than --help"
    run 0 --version
    [ "$out" = "kubectl-railhead ${version#railctl }" ] || fail "its version is not railctl's: $out, $version"

    run 0 status -n railhead --context other --node gpu-01
    grep -- '^--context other exec -n railhead railheadd-gpu-01 -c railheadd -- railctl status' "$PLAYED/calls" >/dev/null ||
        fail "not called as expected: $(cat "$PLAYED/calls")"
    echo 'Error from server (Forbidden): pods "railheadd" is forbidden' >"$PLAYED/forbidden"
    run 3 status
    row 'gpu-11 +no answer .* Error from server \(Forbidden\).*'
    echo 'The connection to the server 10.0.0.1:6443 was refused' >"$PLAYED/unreachable"
    run 3 status
    complains 'the cluster cannot be asked: The connection to the server'
    [ -z "$out" ] || fail "it prints a table: $out"
    rm "$PLAYED/forbidden" "$PLAYED/unreachable"

    # An answer that is cut off is no answer; text of nodes moves no cursor.
    head -n 5 "$PLAYED/answers/gpu-02.status" >"$PLAYED/answers/gpu-01.status"
    printf 'tail \033[2J of it\n' >"$PLAYED/errors/gpu-01.status"
    run 0 status --node gpu-01 --node gpu-02
    row 'gpu-01 +no answer .* tail \[2J of it'
}

test_topology() {
    begin
    sed -i '3,$d' "$PLAYED/nodes" "$PLAYED/pods"
    echo >"$PLAYED/answers/gpu-01.topology"
    echo 'railctl: fabric.json: /rails: is missing' >"$PLAYED/errors/gpu-01.topology"
    echo 3 >"$PLAYED/statuses/gpu-01.topology"
    run 1 topology
    rows 3
    row 'NODE +RAIL +NIC +ADDRESS +RDMA +NUMA +VLAN +VFS +IN USE +FREE +GPUS'
    row 'gpu-00 +rail0 +ens1f0 +0000:43:00.0 +mlx5_0 +0 +100 +2 +0 +2 +GPU0'
    row 'gpu-01 +- +fabric.json: /rails: is missing'
    run 1 topo -o json
    valid_json
}

test_doctor() {
    begin
    sed -i '4,$d' "$PLAYED/nodes" "$PLAYED/pods"
    cat >"$PLAYED/answers/gpu-01.doctor" <<'END'
{"checks": [{"id": "node.memlock", "status": "warning", "found": "a \"low\" limit", "fix": "raise it"},
            {"id": "pci.acs", "status": "ok", "found": "off"}]}
END
    echo '{"checks": [{"id": "qos.pfc", "status": "failure", "found": "no PFC"}, {"id": "a", "status": "note", "found": "b"}]}' >"$PLAYED/answers/gpu-02.doctor"
    run 1 doctor
    row 'gpu-00 +failure +node.modules +.*fix: modprobe ib_uverbs'
    row 'gpu-01 +warning +node.memlock +a "low" limit; fix: raise it'
    hasnt pci.acs
    # Failures of all nodes come before warnings, and notes are last.
    [ "$(awk 'NR > 1 { print $2 }' "$work/out" | uniq | tr '\n' ' ')" = 'failure warning note ' ] || fail "not in order: $out"
    run 0 doctor --node gpu-01
    run 1 doctor --node gpu-01 --strict
}

# A rail as railctl lldp prints it.
neighbor() { # RAIL SWITCH PORT CABLING [KEYS]
    printf '{"rail": "%s", "device": "0000:43:00.0", "pf": "ens1f0", "carrier": true, "cabling": "%s", "switch": "%s", "port": "%s"%s}' \
        "$1" "$4" "$2" "$3" "${5:+, $5}"
}

test_lldp() {
    begin
    sed -i '6,$d' "$PLAYED/nodes" "$PLAYED/pods"
    write /run/railhead/lldp.json "{\"version\": 1, \"node\": \"gpu-00\", \"time\": $(date +%s), \"rails\": [
        {\"rail\": \"rail0\", \"device\": \"0000:43:00.0\", \"pf\": \"ens1f0\", \"carrier\": true, \"cabling\": \"right\", \"expected\": [\"leaf7\"],
         \"lldp\": {\"chassisId\": \"02:00:00:00:00:99\", \"portId\": \"Ethernet1/3\", \"ttl\": 120, \"systemName\": \"leaf7\", \"heard\": $(date +%s)}}]}"
    printf '{"rails": [%s, %s]}\n' "$(neighbor rail0 leaf7 Ethernet1/4 right)" "$(neighbor rail1 leaf70 swp1 unchecked)" >"$PLAYED/answers/gpu-01.lldp"
    # Swapped: it should be at leaf7. And one that nothing was heard of, whose switch may be leaf7.
    printf '{"rails": [%s, %s]}\n' "$(neighbor rail0 leaf8 swp3 wrong '"because": "expected leaf7", "expected": ["leaf[5-7]"]')" \
        "$(neighbor rail1 '' '' unknown '"expected": ["spine1", "l?af7"]')" >"$PLAYED/answers/gpu-02.lldp"
    printf '{"rails": [%s, %s]}\n' "$(neighbor rail0 leafX7 swp1 right '"expected": ["leaf*"]')" "$(neighbor rail1 '' '' unknown)" >"$PLAYED/answers/gpu-03.lldp"
    echo gpu-04 >>"$PLAYED/slow"
    run 1 lldp --timeout 10
    rows 9
    row 'NODE +RAIL +PF +SWITCH +PORT +CABLING'
    row 'gpu-00 +rail0 +ens1f0 +leaf7 +Ethernet1/3 +right'
    row 'gpu-02 +rail1 +ens1f0 +- +- +unknown'
    row 'gpu-04 +- +- +- +- +no answer: no answer in 10 s'
    # What is wrong comes first.
    [ "$(sed -n 2p "$work/out")" = "$(grep '^gpu-02 .* wrong: expected leaf7$' "$work/out")" ] || fail "not in order: $out"
    sed -i 5d "$PLAYED/nodes" "$PLAYED/pods"
    run 1 lldp --switch leaf7
    rows 5
    hasnt gpu-03
    hasnt leaf70
    run 0 lldp --switch 'leaf7*' --node gpu-00 --node gpu-01
    rows 4
    run 0 lldp --rail rail1 --rail rail7 --node gpu-02
    rows 2
    run 1 lldp --rail rail1 --node gpu-02 --strict
    run 1 lldp --switch leaf7 -o json
    valid_json
    [ "$(grep -c '"answered": true' "$work/out")" = 3 ] || fail "not the three nodes at leaf7: $out"
    run 1 lldp --switch leaf9
    complains 'no rail of the nodes that answered is connected to leaf9'
    run 1 lldp --switch 'leaf.'
    # railheadd has ended there.
    echo 'railctl: as of 2026-01-01T00:00:00Z: railheadd does not run' >"$PLAYED/errors/gpu-01.lldp"
    run 1 lldp --node gpu-01 --rail rail0
    row 'gpu-01 +rail0 .* right; as of 2026-01-01T00:00:00Z: railheadd does not run'
}

# Which nodes do not reach leaf7? One command, whose faults come first.
test_reachability() {
    begin
    sed -i '7,$d' "$PLAYED/nodes" "$PLAYED/pods"
    local i
    for i in 01 02 03 04; do
        printf '{"rails": [%s, %s]}\n' "$(neighbor rail0 leaf7 "swp$i" right)" "$(neighbor rail1 leaf8 "swp$i" right)" >"$PLAYED/answers/gpu-$i.lldp"
        cat >"$PLAYED/answers/gpu-$i.reachability" <<END
{"version": 1, "node": "gpu-$i", "rails": [
  {"rail": "rail0", "state": "reachable", "gateway": {"address": "10.100.0.254", "answers": true}, "peers": [{"node": "a"}, {"node": "b"}]},
  {"rail": "rail1", "state": "reachable", "peers": []}], "pods": []}
END
    done
    cat >"$PLAYED/answers/gpu-02.reachability" <<'END'
{"version": 1, "node": "gpu-02", "rails": [
  {"rail": "rail0", "state": "dead", "because": "gateway 10.100.0.254 does not answer; silent: a, b", "gateway": {"address": "10.100.0.254", "answers": false},
   "peers": [{"node": "a", "state": "silent"}, {"node": "b", "state": "silent"}, {"node": "c", "state": "lossy"}, {"node": "d", "state": "unknown"},
             {"node": "e", "state": "mtu"}, {"node": "f", "state": "oneWay"}, {"node": "g"}]},
  {"rail": "rail1", "state": "unknown"}],
 "pods": [{"namespace": "train", "pod": "worker-0", "rail": "rail0", "state": "degraded", "sent": 8, "answered": 2, "gatewayAnswers": true, "because": "2 of 8"},
          {"namespace": "train", "pod": "worker-1", "rail": "rail0", "state": "reachable", "sent": 8, "answered": 8}]}
END
    : >"$PLAYED/answers/gpu-03.lldp"
    echo 'railctl: missing file /run/railhead/lldp.json' >"$PLAYED/errors/gpu-03.lldp"
    echo gpu-05 >>"$PLAYED/slow"
    # The real one, gpu-00, has no reports.
    run 1 reachability --timeout 10
    rows 12
    row 'NODE +RAIL +SWITCH PORT +STATE +GATEWAY +PEERS +BECAUSE'
    row 'gpu-00 +- +- +- +- +- +.*reachability.json.*'
    row 'gpu-02 +rail0 +leaf7/swp02 +dead +silent +1 reachable, 1 lossy, 1 mtu, 1 oneWay, 2 silent, 1 unknown +gateway 10.100.0.254 does not answer; silent: a, b'
    row 'gpu-02 +rail0 +leaf7/swp02 +degraded +answers +2/8 +pod train/worker-0: 2 of 8'
    row 'gpu-02 +rail1 +leaf8/swp02 +unknown +- +- +-'
    row 'gpu-03 +rail0 +- +reachable +answers +2 reachable +-'
    row 'gpu-05 +- +- +no answer +- +- +no answer in 10 s'
    [ "$(awk 'NR > 1 { print $1 }' "$work/out" | uniq | tr '\n' ' ')" = 'gpu-00 gpu-02 gpu-05 gpu-02 gpu-01 gpu-03 gpu-04 ' ] || fail "not in order: $out"
    sed -i '/gpu-00/d; /gpu-05/d' "$PLAYED/nodes" "$PLAYED/pods"
    run 1 reachability --switch leaf7
    rows 6
    hasnt rail1
    row 'gpu-03 +- +- +- +- +- +its switches are not known.*'
    run 0 reachability --switch leaf8
    rows 5
    run 0 reachability --switch leaf7 --node gpu-01 --node gpu-04
    run 0 reachability --rail rail1
    run 1 reachability --switch leaf7 --rail rail1
    complains 'is connected to leaf7 called rail1'
    run 0 reachability --node gpu-01 -o json
    valid_json
    has '"node": "gpu-01"'
}

test_describe() {
    begin
    local i
    for i in $(seq -f %02g 1 39); do
        : >"$PLAYED/answers/gpu-$i.describe"
        echo "railctl: nothing on this node is called 'x'" >"$PLAYED/errors/gpu-$i.describe"
        echo 1 >"$PLAYED/statuses/gpu-$i.describe"
    done
    # The real one, gpu-00, has a rail.
    run 0 describe rail0
    rows 2
    row 'NODE +KIND +NAME +RAIL +DEVICE +SWITCH PORT +STATE +POD'
    row 'gpu-00 +rail +rail0 +rail0 +0000:43:00.0 +- +- +-'
    run 1 describe train/worker-0
    complains "no node that answered knows 'train/worker-0'"
    answer() { # NODE TEXT
        echo "$2" >"$PLAYED/answers/$1.describe"
        rm -f "$PLAYED/errors/$1.describe" "$PLAYED/statuses/$1.describe"
    }
    answer gpu-07 '{"kind": "pod", "name": "train/worker-0", "pod": {"pod": "train/worker-0"}, "devices": [
        {"device": "0000:43:00.1", "rail": "rail0", "switchPort": "leaf7/swp1", "healthy": true, "pod": "train/worker-0"},
        {"device": "0000:83:00.1", "rail": "rail1", "healthy": false, "pod": "train/worker-0"}], "notes": []}'
    run 0 describe train/worker-0 --node gpu-06 --node gpu-07
    rows 3
    row 'gpu-07 +pod +train/worker-0 +rail0 +0000:43:00.1 +leaf7/swp1 +healthy +train/worker-0'
    row 'gpu-07 +pod +train/worker-0 +rail1 +0000:83:00.1 +- +unhealthy +train/worker-0'
    run 0 describe train/worker-0 -o json --node gpu-06 --node gpu-07
    valid_json
    hasnt gpu-06
    answer gpu-08 '{"kind": "PF", "name": "0000:43:00.0", "devices": [
        {"device": "0000:43:00.0", "rail": "rail0", "healthy": true, "drain": {"name": "rail0"}}, {"device": "0000:43:00.1", "rail": "rail0", "healthy": true},
        {"device": "0000:43:00.2", "rail": "rail0", "healthy": true, "pod": "train/worker-1"}]}'
    run 0 describe ens1f0 --node gpu-08
    rows 3
    row 'gpu-08 +PF +0000:43:00.0 +rail0 +0000:43:00.0 +- +drained +-'
    row 'gpu-08 +PF +0000:43:00.0 +rail0 +0000:43:00.2 +- +healthy +train/worker-1'
    # An address: of the node that has it. All others know that another one has it.
    answer gpu-09 '{"kind": "address", "name": "10.100.0.7", "address": {"address": "10.100.0.7", "state": "held", "rail": "rail0", "pod": "train/worker-2"},
        "devices": [{"device": "0000:43:00.1", "switchPort": "leaf7/swp9"}]}'
    for i in 10 11 12; do
        answer "gpu-$i" '{"kind": "address", "name": "10.100.0.7", "address": {"address": "10.100.0.7", "state": "other node'"'"'s", "rail": "rail0", "node": "gpu-77"}, "devices": []}'
    done
    run 0 describe 10.100.0.7 --node gpu-09 --node gpu-10 --node gpu-11 --node gpu-13
    rows 2
    row 'gpu-09 +address +10.100.0.7 +rail0 +0000:43:00.1 +leaf7/swp9 +held +train/worker-2'
    run 0 describe 10.100.0.7 --node gpu-10 --node gpu-11 --node gpu-12
    rows 2
    row "gpu-1[012] +address +10.100.0.7 +rail0 +- +- +other node's: gpu-77 +-"
    echo "railctl: 'x' names 2 things: PF 0000:43:00.0, VF 0000:44:00.0" >"$PLAYED/errors/gpu-14.describe"
    echo gpu-15 >"$PLAYED/slow"
    run 1 describe x --node gpu-07 --node gpu-14 --node gpu-15 --timeout 10
    row "gpu-14 +- +- +- +- +- +- +'x' names 2 things.*"
    row 'gpu-15 +- +- +- +- +- +no answer +no answer in 10 s'
}

test_drain() {
    begin
    local i
    for i in $(seq -f %02g 1 39); do
        echo '{"device": "0000:43:00.0", "name": "rail0", "reason": "a \"bad\" cable", "since": "2026-01-01T00:00:00Z", "drained": true, "inPods": []}' >"$PLAYED/answers/gpu-$i.drain"
    done
    echo gpu-05 >>"$PLAYED/slow"
    echo '{"device": "0000:83:00.0", "name": "rail0", "reason": "", "drained": false, "inPods": ["0000:83:00.1", "0000:83:00.2"], "pods": ["train/a", "train/b"]}' >"$PLAYED/answers/gpu-02.drain"
    : >"$PLAYED/answers/gpu-03.drain"
    echo 'railctl: this node has no PF on rail rail0' >"$PLAYED/errors/gpu-03.drain"
    echo 1 >"$PLAYED/statuses/gpu-03.drain"
    # The real one is gpu-00. A node that cannot be asked is a problem.
    run 1 drain rail0 gpu-00 gpu-01 gpu-02 gpu-03 gpu-05 --reason 'a "bad" cable' --timeout 10
    rows 6
    row 'NODE +RAIL +DEVICE +RESULT +REASON +IN PODS'
    row 'gpu-00 +rail0 +0000:43:00.0 +drained +a "bad" cable +-'
    row 'gpu-02 +rail0 +0000:83:00.0 +was drained already +- +0000:83:00.1,0000:83:00.2 of train/a,train/b'
    row 'gpu-03 +rail0 +- +failed +this node has no PF on rail rail0 +-'
    row 'gpu-05 +rail0 +- +no answer +no answer in 10 s +-'
    complains '1 of 5 nodes did not answer'
    grep -F 'railheadd-gpu-01 -c railheadd -- railctl drain rail0 -o json --reason a "bad" cable' "$PLAYED/calls" >/dev/null ||
        fail "not called as expected: $(cat "$PLAYED/calls")"
    : >"$PLAYED/slow"
    echo 32 >"$PLAYED/wait_for"
    run 1 drain rail0
    [ "$(most)" = 32 ] || fail "$(most) ran at once, and not 32"
    rm "$PLAYED/wait_for"
    run 0 drain rail0 gpu-01 gpu-04
    rows 3
    run 0 drain rail0 gpu-00 -o json
    valid_json

    # What is drained, by the real one.
    for i in $(seq -f %02g 1 39); do echo '{"drains": []}' >"$PLAYED/answers/gpu-$i.drain"; done
    rm "$PLAYED/errors/gpu-03.drain" "$PLAYED/statuses/gpu-03.drain"
    echo '{"drains": [{"device": "0000:83:00.0", "name": "rail0", "reason": "", "inPods": ["0000:83:00.1"], "pods": ["train/a"]}]}' >"$PLAYED/answers/gpu-02.drain"
    run 0 drain
    rows 3
    row 'gpu-00 +rail0 +0000:43:00.0 +drained +a "bad" cable +-'
    row 'gpu-02 +rail0 +0000:83:00.0 +drained +- +0000:83:00.1 of train/a'
    echo '{"drains": []}' >"$PLAYED/answers/gpu-02.drain"
    run 1 undrain rail0 gpu-00
    row 'gpu-00 +rail0 +- +failed +.*health of 0000:43:00.0 is unknown.* +-'
    run 0 undrain rail0 gpu-00 --force
    row 'gpu-00 +rail0 +0000:43:00.0 +in use again +a "bad" cable +-'
    run 0 drain
    rows 1
}

test_rdma() {
    begin
    run 2 test gpu-01 gpu-02 --node gpu-03
    cat >"$PLAYED/answers/rdma-test" <<'END'
{"version": 1, "tests": [{"from": "host", "to": "10.0.0.7:18515", "rail": "", "mtu": 4096,
  "write": {"bytes": 25000000000, "seconds": 2.0},
  "writeLatency": {"medianUs": 1.5, "p99Us": 2.25}, "sendLatency": {"medianUs": 1.75, "p99Us": 3}}]}
END
    echo '1 tests, 0 failed' >"$PLAYED/answers/rdma-listen"
    run 0 test gpu-01 gpu-02 --key-file /keys --duration 3
    row 'gpu-01 +gpu-02 +rail0 +mlx5_0 mlx5_0 +4096 +100.0 +1.50 / 2.25 +1.75 / 3.00 +-'
    grep -F 'exec -n railhead railheadd-gpu-02 -c railheadd -- railctl rdma-test --listen 10.0.0.7:18515 --wait 15 --key-file /keys host@mlx5_0' "$PLAYED/calls" >/dev/null ||
        fail "it does not listen as expected: $(cat "$PLAYED/calls")"
    grep -F 'exec -n railhead railheadd-gpu-01 -c railheadd -- railctl rdma-test --key-file /keys --duration 3 host@mlx5_0 10.0.0.7:18515 -o json' "$PLAYED/calls" >/dev/null ||
        fail "it does not test as expected: $(cat "$PLAYED/calls")"
    run 0 test gpu-01 gpu-02 -o json
    valid_json
    run 1 test gpu-01 gpu-02 --rail rail7
    complains 'have no rail rail7'
    : >"$PLAYED/answers/rdma-listen"
    echo 'railctl: found no RDMA device mlx5_0' >"$PLAYED/errors/rdma-listen"
    echo 1 >"$PLAYED/statuses/rdma-listen"
    echo '{"tests": [{"error": {"message": "connecting to 10.0.0.7:18515: Connection refused"}}]}' >"$PLAYED/answers/rdma-test"
    echo 1 >"$PLAYED/statuses/rdma-test"
    echo 'railctl: connecting to 10.0.0.7:18515: Connection refused' >"$PLAYED/errors/rdma-test"
    run 1 test gpu-01 gpu-02
    row 'gpu-01 +gpu-02 +rail0 .* gpu-02: found no RDMA device mlx5_0'
    complains 'gpu-02# /opt/railhead/bin/railctl rdma-test --listen'
    echo gpu-02 >"$PLAYED/slow"
    run 3 test gpu-01 gpu-02 --timeout 1
}

test_bundle() {
    begin
    sed -i '5,$d' "$PLAYED/nodes" "$PLAYED/pods"
    echo gpu-03 >>"$PLAYED/slow"
    sed -i 's/^gpu-02|.*/gpu-02|railhead|railheadd-gpu-02|Pending|||/' "$PLAYED/pods"
    run 0 bundle "$work/a.tar.gz" --timeout 10
    [ "$out" = "$work/a.tar.gz" ] || fail "it does not say where: $out"
    complains '2 of 4 nodes did not answer'
    mkdir "$work/unpacked"
    tar -xzf "$work/a.tar.gz" -C "$work/unpacked"
    local top file
    top=$(echo "$work/unpacked"/railhead-bundle-*)
    for file in contents.txt cluster/version.txt cluster/nodes.txt cluster/node-events.txt cluster/railhead/daemonsets.yaml \
        cluster/railhead/pods.yaml cluster/railhead/pods.txt cluster/railhead/events.txt \
        cluster/railhead/railhead-fabric-abc.fabric.json nodes/gpu-00/version.txt nodes/gpu-00/status.json \
        nodes/gpu-00/doctor.json nodes/gpu-00/topology.json nodes/gpu-00/journal.json nodes/gpu-00/addresses.json \
        nodes/gpu-00/railheadd-gpu-00.log nodes/gpu-02/railheadd-gpu-02.log nodes/gpu-03/railheadd-gpu-03.log; do
        [ -s "$top/$file" ] || fail "the bundle has no $file: $(cd "$top" && find . -type f)"
    done
    for file in 'has +nodes/gpu-00/status.json +exit status 1' 'lacks +nodes/gpu-00/reachability.json +missing file .*' \
        'lacks +nodes/gpu-00/railheadd-gpu-00.previous.log +Error from server .*' \
        'lacks +nodes/gpu-02 +pod railheadd-gpu-02 is Pending' 'lacks +nodes/gpu-03 +it does not answer.*'; do
        grep -E "^$file\$" "$top/contents.txt" >/dev/null || fail "contents.txt has no '$file': $(cat "$top/contents.txt")"
    done
    # Nothing secret is in it, or was asked for; what surrounds it is there.
    if grep -rE "$PLANTED|$PROBE_KEY|c2lnbmF0dXJl" "$top" >&2; then fail "secrets are in the bundle"; fi
    if grep -iE 'secret|probe-keys' "$PLAYED/calls" >&2; then fail "secrets were asked for"; fi
    grep 'railheadd is ready' "$top/nodes/gpu-00/railheadd-gpu-00.log" >/dev/null || fail "the log is cut off"
    grep 'value: shown' "$top/cluster/railhead/pods.yaml" >/dev/null || fail "too much is removed"
    grep '"rail0"' "$top/nodes/gpu-00/topology.json" >/dev/null || fail "no rail in the topology"
    # The stand-in does print them.
    kubectl logs | grep "$PLANTED" >/dev/null || fail "the stand-in has no secret"
    if grep others-1 "$top/cluster/railhead/events.txt" >&2; then fail "events of others are in the bundle"; fi
    [ "$(stat -c %a "$work/a.tar.gz")" = 600 ] || fail "others may read the bundle"

    run 2 bundle "$work/a.tar.gz"
    complains 'exists already'
    : >"$PLAYED/slow"
    run 1 bundle "$work/unpacked/folder" --strict
    [ -s "$work/unpacked/folder/contents.txt" ] || fail "no folder"
    run 2 bundle "$work/unpacked/folder"
    rm -rf "$work/unpacked" "$work/a.tar.gz"
}

# What the nodes print goes to the real railctl, with the options that are behind `--`.
test_suggest() {
    begin
    sed -i '4,$d' "$PLAYED/nodes" "$PLAYED/pods"
    observed gpu-00 9000 >"$PLAYED/answers/gpu-00.fabric-suggest"
    observed gpu-02 9000 >"$PLAYED/answers/gpu-02.fabric-suggest"
    cp "$PLAYED/pods" "$PLAYED/all"
    sed -i 's/^gpu-01|.*/gpu-01|railhead|railheadd-gpu-01|Pending|||/' "$PLAYED/pods"
    # The node that compares has a fabric with a VLAN. Later it has none.
    run 0 fabric suggest
    has '"vlan": 100'
    run 1 fabric suggest --strict
    # As docs/start/quick-start.md has it: that fabric counts for nothing.
    run 0 fabric suggest -- --from ""
    hasnt '"vlan"'
    rm "$PLAYED/root/etc/railhead/fabric.json"
    mv "$PLAYED/all" "$PLAYED/pods"
    echo gpu-01 >"$PLAYED/slow"
    run 0 fabric suggest --timeout 10
    valid_json
    has '"gpu-00": 0'
    has '"gpu-02": 1'
    hasnt gpu-01
    complains 'guess: rail0: mtu 9000 (high): the PFs of the nodes have it'
    complains 'gpu-01: no answer in 10 s'
    complains '1 of 3 nodes did not answer: the fabric does not have them'
    : >"$PLAYED/slow"
    observed gpu-01 1500 >"$PLAYED/answers/gpu-01.fabric-suggest"
    # A node's own status counts for nothing: its report says why.
    echo 1 >"$PLAYED/statuses/gpu-00.fabric-suggest"
    run 1 fabric suggest
    complains 'contradiction: rail0: gpu-01: the MTU of the PF is 1500, on other nodes 9000'
    run 1 fabric suggest -- --supernet 10.104.0.0/13 --rail-prefix 16 --gateway last
    has '"subnet": "10.104.0.0/16"'
    has '"gateway": "10.104.255.254"'
    run 2 fabric suggest -- --supernet 10.104.0.0
    complains 'is not an address with prefix length'
    run 2 fabric suggest extra
    run 2 fabric suggest --supernet 10.104.0.0/13
    rm "$PLAYED/answers/gpu-01.fabric-suggest"
    write /etc/railhead/topology.json '{'
    run 1 fabric suggest --node gpu-01
    complains 'gpu-01: '
    complains topology.json
    [ -z "$out" ] || fail "it suggests a fabric: $out"
}

test_exec() {
    begin
    printf 'a table\n' >"$PLAYED/answers/gpu-01.health"
    echo 4 >"$PLAYED/statuses/gpu-01.health"
    run 4 exec gpu-01 --context other -- health -w --rail 'rail *' ''
    [ "$out" = 'a table' ] || fail "it prints: $out"
    grep -Fx -- '--context other exec -n railhead railheadd-gpu-01 -c railheadd -- railctl health -w --rail rail * ' "$PLAYED/calls" >/dev/null ||
        fail "not called as expected: $(cat "$PLAYED/calls")"
    run 3 exec gpu-77 -- health
    complains 'gpu-77: no railheadd pod is on this node'
    sed -i 's/^gpu-07|.*/gpu-07|railhead|railheadd-gpu-07|Pending|||/' "$PLAYED/pods"
    run 3 exec gpu-07 -- health
    complains 'gpu-07: pod railheadd-gpu-07 is Pending'
}

test_why() {
    begin
    run 3 why train/worker-0
    complains 'pods "none" not found'
    printf '%s\n' 'gpu-01|{"railhead.io/roce":"1"}|' 'Running||' >"$PLAYED/pod"
    echo 'attached: all devices' >"$PLAYED/answers/gpu-01.why"
    run 0 why train/worker-0
    [ "$out" = $'train/worker-0 is on gpu-01: Running\nattached: all devices' ] || fail "it prints: $out"
    grep -F 'exec -n railhead railheadd-gpu-01 -c railheadd -- railctl why train/worker-0' "$PLAYED/calls" >/dev/null ||
        fail "not called as expected: $(cat "$PLAYED/calls")"
    # kubelet has rejected it; a message may have any character.
    printf '%s\n' 'gpu-01||' 'Failed|UnexpectedAdmissionError|Allocate failed|: 1 of' ' 2' >"$PLAYED/pod"
    echo 1 >"$PLAYED/statuses/gpu-01.why"
    run 1 why train/worker-0
    has 'train/worker-0 is on gpu-01: Failed, UnexpectedAdmissionError: Allocate failed|: 1 of  2'

    # Pending: of its init containers the largest counts, if it is above the sum of the others.
    printf '%s\n' '|{"cpu":"1","railhead.io/roce":"1"} {"railhead.io/roce":"3","nvidia.com/gpu":"8"}|{"railhead.io/roce":"2"} {"railhead.io/roce":"5"}' \
        'Pending||' >"$PLAYED/pod"
    cat >"$PLAYED/allocatable" <<'END'
gpu-00||{"cpu":"64","memory":"1Ti","nvidia.com/gpu":"8","railhead.io/roce":"16"}
gpu-01|[{"effect":"NoSchedule","key":"railhead.io/rails-not-ready"},{"effect":"NoSchedule","key":"other"}]|{"nvidia.com/gpu":"8","railhead.io/roce":"1k"}
gpu-02||{"cpu":"64","nvidia.com/gpu":"8"}
END
    cat >"$PLAYED/requests" <<'END'
gpu-00|{"railhead.io/roce":"4"} {"cpu":"1"}|
gpu-00|{"railhead.io/roce":"1"}|{"railhead.io/roce":"2"}
gpu-01||
END
    printf '%s\n' 'an older one' '0/40 nodes are available: 40 Insufficient railhead.io/roce.' >"$PLAYED/event"
    run 1 why train/worker-0
    rows 9
    has 'train/worker-0 is on no node: Pending'
    row 'NODE +RESOURCE +WANTED +ALLOCATABLE +REQUESTED +FREE +TAINTS'
    row 'gpu-00 +nvidia.com/gpu +8 +8 +0 +8 +-'
    row 'gpu-00 +railhead.io/roce +5 +16 +6 +10 +-'
    row 'gpu-01 +railhead.io/roce +5 +1000 +0 +1000 +railhead.io/rails-not-ready, other'
    row 'gpu-02 +railhead.io/roce +5 +- +0 +- +-'
    row 'FailedScheduling: 0/40 nodes are available: 40 Insufficient railhead.io/roce.'
    printf '%s\n' '|{"cpu":"1"}|' 'Pending||' >"$PLAYED/pod"
    : >"$PLAYED/event"
    run 1 why train/worker-0
    row 'the pod requests no device'
    row 'FailedScheduling: no such event'
}

# An end by a signal ends what it started.
test_interrupt() {
    begin
    cp "$PLAYED/nodes" "$PLAYED/slow"
    PATH=$tools$PATH "${shell[@]}" "$plugin" status >"$work/out" 2>"$work/err" &
    local pid=$! tries=0
    until [ "$(cat "$PLAYED/sleepers" 2>/dev/null | wc -l)" = 32 ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 1000 ] || fail "it does not ask 32 nodes"
        sleep 0.02
    done
    # It knows the process ids a moment after the processes have begun.
    until [ "$(find "$TMPDIR" -path '*/running/*' -not -name '.*' | wc -l)" = 32 ]; do sleep 0.02; done
    kill -TERM "$pid"
    local status=0 sleeper
    wait "$pid" || status=$?
    [ "$status" = 143 ] || fail "a signal ends it with $status"
    for sleeper in $(cat "$PLAYED/sleepers"); do
        tries=0
        while kill -0 "$sleeper" 2>/dev/null; do
            tries=$((tries + 1))
            [ "$tries" -lt 1000 ] || fail "kubectl still runs"
            sleep 0.02
        done
    done
    [ "$(wc -l <"$PLAYED/sleepers")" = 32 ] || fail "it went on to ask"
    [ -z "$(ls -A "$TMPDIR")" ] || fail "it left files"
}

# with SHELL: all tests with this shell, in a folder of its own.
with() {
    read -ra shell <<<"$1"
    work=$work/${shell[0]}
    mkdir -p "$work/bin" "$work/tmp"
    ln -s "$here/stand_in.sh" "$work/bin/kubectl"
    export PLAYED=$work/played TMPDIR=$work/tmp PATH=$work/bin:$PATH
    # With busybox all other programs are busybox's, too.
    tools=''
    if [ "${shell[0]}" = busybox ]; then
        mkdir "$work/applets"
        for tool in $(busybox --list); do ln -s "$(command -v busybox)" "$work/applets/$tool"; done
        tools=$work/bin:$work/applets:
    fi
    for one in failures status no_answer parallel topology doctor lldp reachability describe drain rdma exec why bundle suggest interrupt; do "test_$one"; done
    printf 'held with: %s\n' "$1"
}

version=$("$RAILCTL" --version)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# At the same time: most of the time passes in waiting for nodes that do not answer.
running=()
for name in dash 'busybox sh' 'bash --posix'; do
    command -v "${name%% *}" >/dev/null || continue
    with "$name" &
    running+=($!)
done
[ ${#running[@]} -gt 0 ] || { echo "kubectl_railhead.sh: no shell" >&2; exit 1; }
status=0
for pid in "${running[@]}"; do wait "$pid" || status=1; done
exit "$status"
