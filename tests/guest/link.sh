#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD tests/guest/link.sh
#
# Trouble with real NICs while pods use them: the cable of a PF is pulled at its other end,
# the driver of a VF is taken away, the VFs of a PF are removed.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"

# ---- the node ----------------------------------------------------------------------------
# write_fabric ERRORRATE: the rule over counters, which is off but for its own test.
write_fabric() {
    fabric '.rails[].vlan = 100 | . + {
        pools: [ range(2) | { resource: "railhead.io/rail\(.)", rails: ["rail\(.)"], ncclConfig: "off" } ],
        health: ({ intervalSeconds: 1, vfSeconds: 1, counterSeconds: 1, errorRate: '"$1"', link: { downAfter: 6, upAfter: 1 } }
                 + ({ gone: 0, unbound: 0, vfCount: 0 } | map_values({ downAfter: 1, upAfter: 1 }))) }'
}
node() {
    make_vfs pf0 3 && make_vfs pf1 2 && write_fabric false && kubelet_start &&
        daemon_start 0 && offers rail0 3 && offers rail1 2
}

# ---- the cable ---------------------------------------------------------------------------
carrier_is() { [ "$(cat /sys/class/net/pf0/carrier)" = "$1" ]; }
pull() { cable w0 out && within 60 carrier_is 0; }
plug() { cable w0 in && within 60 carrier_is 1; }
# Shorter than downAfter, which on a busy machine takes more than one attempt.
pull_shortly() {
    local began
    for _ in 1 2 3 4 5; do
        began=${EPOCHREALTIME/./}
        pull && plug || return
        [ $((${EPOCHREALTIME/./} - began)) -gt 5000000 ] || { pause 2; return 0; }
        offers rail0 3 || return
        : >/tmp/lists                    # this one was no short one
    done
    return 1
}
reason_is_pf0s() {                       # RULE N: of N VFs and of pf0, and of nobody else
    railctl health -o json >/tmp/health # its exit status says that something is unhealthy
    jq -e --arg rule "$1" --arg pf "$(pci_of pf0)" --argjson n "$2" '[ .devices[] | select(.state == "Unhealthy") ]
        | length == $n + 1 and all(.[]; .pf == $pf and (.since | fromdateiso8601) > 0
              and any(.reasons[]; .rule == $rule and .device == $pf and (.text | contains("PF pf0"))))' /tmp/health ||
        { cat /tmp/health; return 1; }
}
remembers() { # STARTED|ENDED: the newest change of pf0
    railctl health --history -o json | jq -e --arg pf "$(pci_of pf0)" '[ .changes[] | select(.device == $pf) ] | last
        | .itself and .vfs == 3 and (.'"$1"' | any(.rule == "link" and .device == $pf))'
}

# ---- pods --------------------------------------------------------------------------------
attach() { pod "$1" && cni add "$1" "$2" && ip -n "$1" link show net1; } # POD DEVICE
vlan_of() { ip -j link show pf0 | jq -e --argjson vf "$1" --argjson vlan "$2" '.[0].vfinfo_list[] | select(.vf == $vf) | (.vlan_list[0].vlan // 0) == $vlan'; }
check_names_it() { ! cni check "$1" "$2" >/tmp/differences 2>&1 && grep -q "$3" /tmp/differences; }

check 'railheadd serves both rails' node
[ "$failures" = 0 ] || { cat "$OUT"/*.log; finish; }
check 'a VF of rail0 is given to a pod' allocate rail0 1
vf=${devices[0]}
check '... and attached, in its VLAN' attach a "$vf" && check '... by the PF' vlan_of 0 100

watch_lists rail0
check 'the cable of pf0 is pulled for a moment' pull_shortly
watch_end
check '... which is no trouble' never rail0 'any(.[]; . == "Unhealthy")'

check 'the cable of pf0 is pulled' pull
check '... its VFs are unhealthy, that of the pod, too' unhealthy rail0 3
watch_lists rail0 rail1
check '... and nothing else is: railctl names cause and time' reason_is_pf0s link 3
deny '... by its exit status, too' railctl health
check '... and remembers' remembers started
check '... the log says so' logged 0 '"msg":"unhealthy".*link of .*PF pf0'
check 'kubelet restarts' kubelet-standin restart --dir "$KUBELET"
check '... and hears the same' unhealthy rail0 3
check '... of rail1 as well' offers rail1 2
watch_end
check '... no VF of rail0 was offered in between' never rail0 'any(.[]; . == "Healthy")'
check '... none of rail1 was not' never rail1 'any(.[]; . == "Unhealthy")'
watch_lists rail0
registered=$(grep -c '"registered with kubelet".*rail0' "$OUT/railheadd-0.log")
check 'railheadd is killed' daemon_end 0 KILL
check '... and back' daemon_start 0
check '... registered' within 120 least 0 '"registered with kubelet".*rail0' $((registered + 1))
check '... and tells the same' unhealthy rail0 3
watch_end
check '... no VF of rail0 was offered in between' never rail0 'any(.[]; . == "Healthy")'
check 'the cable is in again' plug
check '... the VFs are healthy' offers rail0 3
check '... railctl agrees' railctl health
check '... and remembers' remembers ended
check 'the pod has not noticed' cni check a "$vf"

check 'the rule over error counters is switched on' write_fabric '{}'
flap() { # the carrier is there at its end; on a busy machine it is away so long that the rule over the link fires, too
    for _ in {1..20}; do
        pull && plug && pause 1 || return
        has rail0 3 Unhealthy && reason_is_pf0s errorRate 3 && return
    done
    return 1
}
check '... and the cable is pulled again and again: nobody trusts the link' flap
check '... railctl says why' reason_is_pf0s errorRate 3
check '... the rule is switched off' write_fabric false
check '... and lets go at once' offers rail0 3

# ---- the driver ----------------------------------------------------------------------------
# The kernel unregisters the interface in the pod.
echo "$vf" >/sys/bus/pci/drivers/igbvf/unbind
check 'the driver of the pod'\''s VF is unbound: kubelet loses one device' offers rail0 2
deny '... that one' knows rail0 "$vf"
vf_is() { railctl health -o json | jq -e --arg vf "$vf" '.devices[] | select(.device == $vf) | '"$1"; }
check '... railctl says why' within 60 vf_is '.state == "Unhealthy" and .reasons[0].rule == "unbound"'
check '... the pod still has it' holder "$vf"
check '... CHECK names what is wrong' check_names_it a "$vf" 'interface net1 is missing'
check '... DEL' cni del a "$vf" && check '... and again' cni del a "$vf"
check '... leaves nothing' nothing_left
check '... and the VF without VLAN' vlan_of 0 0
deny '... it is not offered' knows rail0 "$vf"
echo "$vf" >/sys/bus/pci/drivers/igbvf/bind
check 'the driver is bound: kubelet has it back' offers rail0 3
check '... all is well' within 60 railctl health
check '... kubelet has the pod'\''s device back' release rail0 "$vf"

# ---- the VFs ---------------------------------------------------------------------------------
check 'two pods have VFs of rail0' allocate rail0 2
first=${devices[0]} second=${devices[1]}
check '... attached' cni add a "$first" && check '... each' attach b "$second"
echo 0 >/sys/class/net/pf0/device/sriov_numvfs
check 'the VFs of pf0 are removed: kubelet has none' within 120 has rail0 0 Healthy
deny '... and has no unhealthy ones' knows rail0 "$first"
check '... those of pf1 are there' offers rail1 2
check '... CHECK names what is wrong' check_names_it a "$first" 'interface net1 is missing'
check '... DEL of the one' cni del a "$first" && check '... and again' cni del a "$first"
check 'the VFs are made anew' make_vfs pf0 3
check '... kubelet has them' offers rail0 3
check '... DEL of the other, whose VF is a new one' cni del b "$second" && check '... and again' cni del b "$second"
check '... leaves nothing' nothing_left
check '... kubelet has the pods'\'' devices back' release rail0 "$first" "$second"
check 'both VFs' cni add a "$second" && check '... attach to pods' cni add b "$first"
check '... as they should' cni check a "$second" && check '... both' cni check b "$first"
check '... DEL' cni del a "$second" && check '... of both' cni del b "$first"
check '... leaves nothing' nothing_left

deny 'railheadd met no error' logged 0 '"level":"error"'
check '... and ends on SIGTERM' daemon_end 0
finish
