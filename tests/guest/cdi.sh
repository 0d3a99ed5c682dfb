#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD tests/guest/cdi.sh
#
# Two railheadd with state folders of their own and one /run/cdi, as when a second one is started by hand or in a
# container: neither harms the other's CDI specs. A third program that removes and changes specs costs no container:
# each pass of railheadd and PreStartContainer write them again.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"
export PATH=$PATH:/opt/cni/bin

# The second node has pf1, in a network namespace, and everything below /run/railhead and /var/lib/railhead for itself.
at_node1() { ip netns exec node1 /tmp/node1/enter "$@"; }
second_node() { # OPTION...
    mkdir -p /run/railhead /var/lib/railhead /run/cdi /tmp/node1/{run,lib,kubelet} || return
    printf '%s\n' '#!/bin/bash' 'mount --bind /tmp/node1/run /run/railhead && mount --bind /tmp/node1/lib /var/lib/railhead && exec "$@"' >/tmp/node1/enter
    chmod 755 /tmp/node1/enter
    ip netns add node1 && ip link set pf1 netns node1 && ip -n node1 link set pf1 up || return
    for vf in 0 1; do
        ip link set "$(cat "/sys/bus/pci/devices/$pf1/virtfn$vf/net/"*/uevent | sed -n 's/^INTERFACE=//p')" netns node1 || return
    done
    # Not by at_node1, which would be a shell to wait for.
    ip netns exec node1 /tmp/node1/enter railheadd --kubelet-dir /tmp/node1/kubelet --http-address '' "$@" >"$OUT/railheadd-node1.log" 2>&1 &
    node1=$!
}
node() {
    modprobe -a rdma_rxe ib_uverbs && make_vfs pf0 2 && make_vfs pf1 2 || return
    pf1=$(pci_of pf1)
    fabric '.rails[].softRoce = true | . + { pools: [ range(2) | { resource: "railhead.io/rail\(.)", rails: ["rail\(.)"], ncclConfig: "required" } ] }' || return
    kubelet_start && daemon_start 0 --reconcile-interval 1 && offers rail0 2
}
# attach1 VERB DEVICE: a pod of the second node.
attach1() {
    at_node1 env CNI_COMMAND="$1" CNI_CONTAINERID=pod1 CNI_NETNS=/run/netns/pod1 CNI_IFNAME=net1 CNI_PATH=/opt/cni/bin railhead <<<'
        { "cniVersion": "1.0.0", "name": "rails", "type": "railhead", "linkTimeoutSeconds": 100, "deviceID": "'"$2"'" }' >/tmp/answer || { cat /tmp/answer; return 1; }
}
spec() { echo "/run/cdi/railhead-$1.json"; }
specs() { sha256sum "$(spec "$vf0")" "$(spec "$vf1")"; }
passes() { sed -n 's/^railhead_reconcile_passes_total //p' <(railctl_metrics); }
railctl_metrics() {
    local fd
    exec {fd}<>/dev/tcp/127.0.0.1/9917 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&"$fd" && cat <&"$fd"
    exec {fd}>&-
}
# Both daemons have looked twice.
both_looked() {
    local before
    before=$(passes)
    : >/tmp/stamp
    within 120 more_passes "$before" && at_node1 railheadd --reconcile-once >/tmp/pass && at_node1 railheadd --reconcile-once >/tmp/pass
}
more_passes() { [ "$(passes)" -ge $(($1 + 3)) ]; }
metric() { railctl_metrics | grep -F "$1" | awk '{ sum += $NF } END { exit !(sum >= 1) }'; }

check 'a node with two VFs' node
[ "$failures" = 0 ] || { cat "$OUT"/*.log; finish; }
check 'a second railheadd' second_node --reconcile-interval 1
check 'a pod of the first' allocate rail0 1
vf0=${devices[0]} vf1=$(basename "$(readlink "/sys/bus/pci/devices/$pf1/virtfn0")")
check '... ADD' pod pod0
check '... ADD' cni add pod0 "$vf0"
check 'a pod of the second' pod pod1
check '... ADD' attach1 ADD "$vf1"
before=$(specs)
check 'both look for what has no pod' both_looked
check '... and both specs are there' test "$(specs)" = "$before"
: >"$(spec 0000:99:10.0)"
check 'a spec of a third program' both_looked
check '... is nobody'"'"'s to remove' test -e "$(spec 0000:99:10.0)"
rm "$(spec 0000:99:10.0)"

rm "$(spec "$vf0")" "$(spec "$vf1")"
# Before the passes by hand, which would write it, too.
check 'somebody removes both: the second writes its own again' within 120 grep -q 'cdi-spec-rewrite' "$OUT/railheadd-node1.log"
check '... and the first looks' both_looked
check '... and they are there again' test "$(specs)" = "$before"
check '... which the log says' logged 0 '"msg":"reconciled".*cdi-spec-rewrite'
check '... and a metric' metric 'railhead_reconcile_actions_total{kind="cdi-spec-rewrite"'

# Right before the container starts there is no time for a pass.
daemon_end 0
registered=$(grep -c '"registered with kubelet".*rail0' "$OUT/railheadd-0.log")
check 'a railheadd that does not look' daemon_start 0 --reconcile-interval 0
check '... registers' within 120 least 0 '"registered with kubelet".*rail0' $((registered + 1))
check '... offers' offers rail0 2
echo '{}' >"$(spec "$vf0")"
check 'PreStartContainer of a changed spec' kubelet-standin prestart --dir "$KUBELET" railhead.io/rail0 "$vf0"
check '... writes it again' test "$(specs)" = "$before"
rm "$(spec "$vf0")"
check 'PreStartContainer of one that is gone' kubelet-standin prestart --dir "$KUBELET" railhead.io/rail0 "$vf0"
check '... writes it again' test "$(specs)" = "$before"
check '... the log says so' logged 0 'CDI specs were missing or changed'
check '... and a metric' metric 'railhead_cdi_spec_rewrites_total{resource="railhead.io/rail0"}'
check 'DEL of the first' cni del pod0 "$vf0"
check '... its spec is gone' test ! -e "$(spec "$vf0")"
check '... the other is not' test -e "$(spec "$vf1")"
check 'DEL of the second' attach1 DEL "$vf1"
check '... its spec is gone' test ! -e "$(spec "$vf1")"
check 'nothing is left' nothing_left
check 'nor of the records' test -z "$(find /run/railhead/cdi /tmp/node1/run/cdi -name '*json*' 2>/dev/null)"
kill "$node1" && wait "$node1"
check 'the daemon ends' daemon_end 0
[ "$failures" = 0 ] || cat "$OUT"/*.log
finish
