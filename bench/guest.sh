#!/bin/bash
# guest.sh - the part of the benchmarks on real VFs; runs in a guest of tests/support/vm.
# usage: guest.sh ROUNDS STARTUP_ROUNDS RAILS_ROUNDS     (bench/run.sh calls it)
# The programs are copied to the guest's memory first: what is shared by the machine
# outside is slow to read, and not what is to be measured.  Three VFs of pf0, one for
# each contender; the standard plugins cannot set a VLAN, theirs has it before.
# Then eight VFs for one pod, four of each PF, which all contenders use in turn.
# Writes $OUT/lines.
set -eu
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=bench/guest_lib.sh
. "$SRC/bench/guest_lib.sh"
rounds=$1 startup_rounds=$2 rails_rounds=$3
readonly VLAN=100

die() { echo "bench/guest.sh: $*" >&2; exit 1; }
bin=/tmp/bin peers=/tmp/cni
mkdir -p "$bin" "$peers" /etc/railhead
cp "$BUILD"/bin/{railhead,railhead-ipam,bare_attach,peak_memory,bench_runner} "$bin/"
cp /mnt/cni/{host-device,host-local,tuning,sbr} "$peers/"
modprobe -a rdma_rxe ib_uverbs || die "no modules for soft RoCE"
for pf in pf0 pf1; do
    make_vfs "$pf" 4 || die "no VFs"
    for vf in 0 1 2 3; do
        give_vf_mac "$pf" "$vf" "02:00:00:00:0${pf#pf}:0$vf" || die "VF $vf of $pf has no MAC"
    done
done
ip link set pf0 vf 2 vlan "$VLAN"
for i in 0 1 2 3 4; do ip netns add "bench-$i" && ip -n "bench-$i" link set lo up; done

devices=()
for vf in 0 1 2; do
    who=(bare railhead host-device)
    devices+=(--device "${who[vf]}=$(vf_netdev pf0 "$vf"),$(vf_pci pf0 "$vf"),pf0,$vf")
done
common=("${devices[@]}" --rounds "$rounds" --out "$OUT/lines" --programs "$bin" --by-bdf --vlan "$VLAN")

echo "guest: start-up" >&2
measure startup --programs "$bin" --group guest-startup --rounds "$startup_rounds" --out "$OUT/lines" \
    "$bin/railhead" "$bin/railhead-ipam" "$peers/host-device" "$peers/host-local"
echo "guest: VFs with VLAN" >&2
bash "$SRC/bench/fabric.sh" "$(uname -n)" "\"vlan\": $VLAN," >/etc/railhead/fabric.json
measure attach --group vf "${common[@]}" --peers "$peers" --scratch /tmp/scratch
echo "guest: VFs with VLAN and soft RoCE" >&2
bash "$SRC/bench/fabric.sh" "$(uname -n)" "\"vlan\": $VLAN, \"softRoce\": true," >/etc/railhead/fabric.json
measure attach --group vf-rxe "${common[@]}" --soft-roce --scratch /tmp/scratch-rxe

# rails_fabric EXTRA: two rails.
rails_fabric() {
    local rail
    for rail in 0 1; do
        cat <<END
{ "name": "rail$rail", "pf": "pf$rail", "vlan": $((100 * (rail + 1))), "mtu": 1500, $1
  "subnet": "10.$((100 * (rail + 1))).0.0/24", "gateway": "10.$((100 * (rail + 1))).0.254", "routes": ["10.0.0.0/8"],
  "nodeRanges": { "$(uname -n)": "10.$((100 * (rail + 1))).0.10-10.$((100 * (rail + 1))).0.99" } }
END
    done | jq -s '{ version: 1, addresses: { reuseDelaySeconds: 0 }, rails: . }' >/etc/railhead/fabric.json
}
ip link set pf0 vf 2 vlan 0
vfs=()
for pf in pf0 pf1; do
    for vf in 0 1 2 3; do vfs+=(--vf "$(vf_netdev "$pf" "$vf"),$(vf_pci "$pf" "$vf"),$pf,$vf,${pf#pf}"); done
done
rails=(measure rails "${vfs[@]}" --out "$OUT/lines" --programs "$bin" --scratch /tmp/scratch-rails)
echo "guest: one VF with a short and a long journal" >&2
rails_fabric ''
"${rails[@]}" --group journal --rounds "$((2 * rails_rounds))" --journal
echo "guest: eight VFs" >&2
"${rails[@]}" --group rails --rounds "$rails_rounds" --peers "$peers"
echo "guest: eight VFs with soft RoCE" >&2
rails_fabric '"softRoce": true,'
"${rails[@]}" --group rails-rxe --rounds "$rails_rounds" --soft-roce
echo "guest: VFs of the same and of another tenant" >&2
rails_fabric ''
jq '.addresses.conflictProbeMs = 0 | .policy.networks = [ { devices: "any" } ]' /etc/railhead/fabric.json >/tmp/fabric.json
mv /tmp/fabric.json /etc/railhead/fabric.json
measure rails "${vfs[@]:0:2}" --out "$OUT/lines" --programs "$bin" --scratch /tmp/scratch-rails \
    --group tenant-one --rounds "$rails_rounds" --tenants
"${rails[@]}" --group tenant-eight --rounds "$rails_rounds" --tenants
