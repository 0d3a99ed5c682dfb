#!/bin/bash
# guest.sh - the part of tests/system/crash on real VFs; runs in a guest of tests/support/vm.
# usage: guest.sh COMMAND [ARG...]     (run.sh calls it)
#   sweep  ARG...: for crash_sweep run; one VF with soft RoCE and all settings but a MAC
#   mac    the same with a MAC, for which its driver has to be bound again
#   two    the same with a VF of each rail in one call
#   stress ARG...: for crash_stress; 14 VFs
# The programs are copied to the guest's memory first: what is shared by the machine
# outside is slow to read.
set -eu
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"

die() { echo "tests/system/crash/guest.sh: $*" >&2; exit 2; }
command=$1
shift
bin=/tmp/bin
mkdir -p "$bin" /etc/railhead
cp "$BUILD"/bin/{railhead,railhead-ipam,railheadd,crash_sweep,crash_stress} "$bin/"
soft=true
case $(uname -r) in
    5.*) soft=false ;; # it has no soft RoCE in pods
    *) modprobe -a rdma_rxe ib_uverbs || die "no modules for soft RoCE" ;;
esac

vfs=1
[ "$command" != stress ] || vfs=7
for pf in 0 1; do
    make_vfs "pf$pf" "$vfs" || die "pf$pf gets no VFs"
    for ((i = 0; i < vfs; i++)); do
        give_vf_mac "pf$pf" "$i" "02:00:00:00:0$pf:0$i" || die "VF $i of pf$pf has no MAC"
    done
done
# What has to come back: not what the driver starts with.
vf0=$(vf_netdev pf0 0)
{
    echo "link set pf0 vf 0 vlan 7 qos 3 spoofchk off max_tx_rate 300"
    echo "link set $vf0 mtu 1400 alias first txqueuelen 777"
    echo "link property add dev $vf0 altname first-vf"
} | ip -batch -
for name in first other; do ip netns add "$name" && ip -n "$name" link set lo up; done
bash "$SRC/tests/system/crash/fabric.sh" "$(uname -n)" '"vlan": 100, "softRoce": '$soft',' >/etc/railhead/fabric.json

config='"cniVersion": "1.0.0", "name": "crash", "type": "railhead", "linkTimeoutSeconds": 120, "previousDelTimeoutSeconds": 0, "conflictProbeMs": 0'
settings='"vlanQoS": 5, "vlan": 200, "spoofchk": "on", "max_tx_rate": 400'
sweep=("$bin/crash_sweep" run --hardware --programs "$bin" --daemon "$bin/railheadd" --pod /run/netns/first --other /run/netns/other)
case $command in
    sweep) "${sweep[@]}" --label VF --config "{ $config, $settings, \"deviceID\": \"$(vf_pci pf0 0)\" }" "$@" ;;
    mac)
        "${sweep[@]}" --label "VF with MAC" \
            --config "{ $config, $settings, \"mac\": \"02:00:00:00:aa:01\", \"deviceID\": \"$(vf_pci pf0 0)\" }" "$@" ;;
    two)
        "${sweep[@]}" --label "two VFs" \
            --config "{ $config, \"devices\": [\"$(vf_pci pf0 0)\", \"$(vf_pci pf1 0)\"] }" "$@" ;;
    stress)
        devices=()
        for pf in 0 1; do
            for ((i = 0; i < vfs; i++)); do devices+=("$(vf_pci "pf$pf" "$i")"); done
        done
        "$bin/crash_stress" --programs "$bin" --netns /run/netns --label VFs \
            --config "{ $config, \"deviceID\": \"DEVICE\" }" --device "${devices[@]}" "$@" ;;
    *) die "there is no '$command'" ;;
esac
