#!/bin/bash
# guest.sh - the part of the benchmarks on real VFs; runs in a guest of tests/vm.
# usage: guest.sh ROUNDS STARTUP_ROUNDS     (bench/run.sh calls it)
# The programs are copied to the guest's memory first: what is shared by the machine
# outside is slow to read, and not what is to be measured.  Three VFs of pf0, one for
# each contender; the standard plugins cannot set a VLAN, theirs has it before.
# Writes $OUT/lines.
set -eu
# shellcheck source=tests/vm/lib.sh
. "$SRC/tests/vm/lib.sh"
rounds=$1 startup_rounds=$2
readonly VLAN=100

die() { echo "bench/guest.sh: $*" >&2; exit 1; }
bin=/tmp/bin peers=/tmp/cni
mkdir -p "$bin" "$peers" /etc/railhead
cp "$BUILD"/bin/{railhead,railhead-ipam,bare_attach,peak_memory,railhead_bench} "$bin/"
cp /mnt/cni/{host-device,host-local,tuning,sbr} "$peers/"
modprobe -a rdma_rxe ib_uverbs || die "no modules for soft RoCE"
make_vfs pf0 3 || die "no VFs"
for vf in 0 1 2; do give_vf_mac pf0 "$vf" "02:00:00:00:00:0$vf" || die "VF $vf has no MAC"; done
ip link set pf0 vf 2 vlan "$VLAN"
for i in 0 1 2 3 4; do ip netns add "bench-$i" && ip -n "bench-$i" link set lo up; done

devices=()
for vf in 0 1 2; do
    who=(bare railhead host-device)
    devices+=(--device "${who[vf]}=$(vf_netdev pf0 "$vf"),$(vf_pci pf0 "$vf"),pf0,$vf")
done
common=("${devices[@]}" --rounds "$rounds" --out "$OUT/lines" --programs "$bin" --by-bdf --vlan "$VLAN")

echo "guest: start-up" >&2
"$bin/railhead_bench" startup --group guest-startup --rounds "$startup_rounds" --out "$OUT/lines" \
    "$bin/railhead" "$bin/railhead-ipam" "$peers/host-device" "$peers/host-local"
echo "guest: VFs with VLAN" >&2
bash "$SRC/bench/fabric.sh" "$(uname -n)" "\"vlan\": $VLAN," >/etc/railhead/fabric.json
"$bin/railhead_bench" attach --group vf "${common[@]}" --peers "$peers" --scratch /tmp/scratch
echo "guest: VFs with VLAN and soft RoCE" >&2
bash "$SRC/bench/fabric.sh" "$(uname -n)" "\"vlan\": $VLAN, \"softRoce\": true," >/etc/railhead/fabric.json
"$bin/railhead_bench" attach --group vf-rxe "${common[@]}" --soft-roce --scratch /tmp/scratch-rxe
