#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD tests/guest/fabric_follow.sh
#
# A changed fabric under running pods (railheadd --follow-config), as docs/operate/change-a-rail.md promises: the VLAN of a
# free rail changes live, a busy rail keeps its definition until its pods have ended, an invalid fabric changes nothing, and a
# railheadd that is killed meanwhile loses nothing.
set -u
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=tests/guest/node.sh
. "$SRC/tests/guest/node.sh"

# wanted FILTER: the ConfigMap has the first fabric, changed by the jq filter. kubelet swaps a link to a new directory.
swaps=0
wanted() {
    swaps=$((swaps + 1))
    mkdir -p "/config/..$swaps" && jq "$1" /tmp/first.json >"/config/..$swaps/fabric.json" || return
    ln -sfn "..$swaps" /config/..new && mv -T /config/..new /config/..data && ln -sfn ..data/fabric.json /config/fabric.json
}
vlans() { wanted ".rails[0].vlan = $1 | .rails[1].vlan = $2"; }
# in_force VLAN VLAN: what all parts of Railhead read.
in_force() { [ "$(jq -c '[.rails[].vlan]' /etc/railhead/fabric.json)" = "[$1,$2]" ]; }
# vlan_is DEVICE VLAN: as the PF says.
vlan_is() {
    local link vf pf
    for link in /sys/bus/pci/devices/"$1"/physfn/virtfn*; do
        if [ "$(basename "$(readlink "$link")")" = "$1" ]; then vf=${link##*virtfn}; fi
    done
    pf=$(basename "/sys/bus/pci/devices/$1/physfn/net/"*)
    [ "$(ip -j link show dev "$pf" | jq ".[0].vfinfo_list[$vf].vlan_list[0].vlan // .[0].vfinfo_list[$vf].vlan")" = "$2" ] ||
        { ip link show dev "$pf"; return 1; }
}
status_says() { railctl status >/tmp/status 2>&1; grep -qF -- "$1" /tmp/status || { cat /tmp/status; return 1; }; }
# start_pod POD RAIL: sets device.
start_pod() { allocate "rail$2" 1 && device=${devices[0]} && pod "$1" && cni add "$1" "$device" >/dev/null; }
end_pod() { cni del "$1" "$3" >/dev/null && ip netns del "$1" && release "rail$2" "$3"; } # POD RAIL DEVICE
serve() { daemon_start "$1" --follow-config=/config --reconcile-interval 1 && offers rail0 2 && offers rail1 2; }
world() { ip -d -j link show | jq -c 'sort_by(.ifname)[] | [.ifname, .address, .mtu, .vfinfo_list]'; }

unchanged() { diff <(echo "$before") <(world); }

node() {
    local pf vf
    for pf in 0 1; do
        make_vfs "pf$pf" 2 || return
        for vf in 0 1; do give_vf_mac "pf$pf" "$vf" "02:00:00:00:0$pf:0$vf" || return; done
    done
    fabric '.rails[0].vlan = 100 | .rails[1].vlan = 101 | . + { pools: [ range(2) | { resource: "railhead.io/rail\(.)",
        rails: ["rail\(.)"], ncclConfig: "off" } ], health: { errorRate: false } }' || return
    cp /etc/railhead/fabric.json /tmp/first.json && vlans 100 101 && kubelet_start && serve 0
}
check 'railheadd serves both rails' node
[ "$failures" = 0 ] || finish
before=$(world)

check 'a pod has a VF of rail1' start_pod busy 1
busy=$device
check '... in VLAN 101' vlan_is "$busy" 101
check 'both rails get another VLAN' vlans 200 201
check 'the free one changes' within 60 in_force 200 101
check '... its next pod has it' start_pod next 0
next=$device
check '... as the PF says' vlan_is "$next" 200
check 'the busy one waits, and says for how many pods' eventually status_says '1 pod'
check '... its pod keeps its VLAN' vlan_is "$busy" 101
check '... and a further pod of it gets the same' start_pod further 1
further=$device
check '... as the PF says' vlan_is "$further" 101
check 'rail1 is drained' railctl drain rail1 --reason 'another VLAN'
check 'its pods end' end_pod busy 1 "$busy"
check '... the last one, too' end_pod further 1 "$further"
check 'then the change is in force' within 60 in_force 200 201
check 'rail1 is back' railctl undrain rail1
check '... with its VFs' offers rail1 2
check '... for new pods' start_pod anew 1
anew=$device
check '... in VLAN 201' vlan_is "$anew" 201
check 'railheadd is the one that was started' kill -0 "${daemons[0]}"

check 'a wrong fabric comes' wanted '.rails[0].vlan = "many"'
check '... is refused by its pointer' within 60 status_says '/rails/0/vlan'
check '... and changes nothing' in_force 200 201
check 'the former one comes again' vlans 200 201
check '... and is not refused' within 60 sh -c '! railctl status | grep -q /rails/0/vlan'

# Killed at any moment from the swap on: the file is the one or the other, and the next railheadd finishes.
check 'the pod on rail0 ends' end_pod next 0 "$next"
old=200 killed=''
RANDOM=1  # the same moments in each run
for round in 1 2 3 4 5 6; do
    new=$((300 + round))
    vlans "$new" 400
    pause "$((RANDOM % 4)).$((RANDOM % 10))"
    check "round $round: railheadd is killed" daemon_end $((round - 1)) KILL
    if in_force "$old" 201; then killed+=' before'; else killed+=' after'; fi
    check '... the fabric is whole' sh -c 'railctl config check /etc/railhead/fabric.json >/dev/null || [ $? = 4 ]'
    check '... one of the two' sh -c "jq -e '.rails[0].vlan == $old or .rails[0].vlan == $new' /etc/railhead/fabric.json"
    check '... the next one serves' serve "$round"
    check '... and finishes it' within 60 in_force "$new" 201
    old=$new
done
echo "killed$killed the change"
check 'the pod on rail1 has kept its VLAN' vlan_is "$anew" 201
check '... until it ends' end_pod anew 1 "$anew"
check 'then its rail changes' within 60 in_force "$old" 400
check 'nothing is left of any pod' within 60 nothing_left
check 'the VFs are as before' eventually unchanged
check 'railheadd ends' daemon_end 6
finish
