#!/bin/bash
# guest_before.sh - a pod's VFs by this build and by an earlier one, in turns; runs in a guest of tests/support/vm.
# usage: tests/support/vm/run-guest.sh -b BUILD -s before=DIR -o JOB bench/guest_before.sh ROUNDS [FILTER [VFS]]
#   DIR     has the earlier build's programs, railhead and railhead-ipam
#   FILTER  jq changes fabric.json by it, e.g. '.rails[].softRoce = true'
#   VFS     so many, of 1 to 8 (default)
# Prints, for ADD and DEL, the medians in ms and that of the ratios of each round. Writes $OUT/lines.
set -eu
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"
# shellcheck source=bench/guest_lib.sh
. "$SRC/bench/guest_lib.sh"
rounds=$1 filter=${2:-.} count=${3:-8}

die() { echo "bench/guest_before.sh: $*" >&2; exit 1; }
modprobe -a rdma_rxe ib_uverbs
mkdir -p /tmp/bin /tmp/before /etc/railhead
cp "$BUILD"/bin/{railhead,railhead-ipam,bench_runner} /tmp/bin/
cp /mnt/before/{railhead,railhead-ipam} /tmp/before/
vfs=()
for pf in pf0 pf1; do
    make_vfs "$pf" 4 || die "no VFs"
    for vf in 0 1 2 3; do
        give_vf_mac "$pf" "$vf" "02:00:00:00:0${pf#pf}:0$vf" || die "VF $vf of $pf has no MAC"
        [ ${#vfs[@]} = $((2 * count)) ] || vfs+=(--vf "$(vf_netdev "$pf" "$vf"),$(vf_pci "$pf" "$vf"),$pf,$vf,${pf#pf}")
    done
done
for i in 0 1 2; do ip netns add "bench-$i" && ip -n "bench-$i" link set lo up; done
jq -n --arg node "$(uname -n)" '{ version: 1, addresses: { reuseDelaySeconds: 0 }, rails: [ range(2) | { name: "rail\(.)", pf: "pf\(.)",
    vlan: (100 * (. + 1)), mtu: 1500, subnet: "10.\(100 * (. + 1)).0.0/24", gateway: "10.\(100 * (. + 1)).0.254", routes: ["10.0.0.0/8"],
    nodeRanges: { ($node): "10.\(100 * (. + 1)).0.10-10.\(100 * (. + 1)).0.99" } } ] } | '"$filter" >/etc/railhead/fabric.json
measure rails "${vfs[@]}" --out "$OUT/lines" --programs /tmp/bin --before /tmp/before --scratch /tmp/scratch \
    --group before --rounds "$rounds"
jq -rs 'def median: sort | .[length / 2 | floor];
    def of($who; $verb): map(select(.who == $who and .what == $verb and .unit == "ms"))[0].values;
    ("ADD", "DEL") as $verb | of("railhead"; $verb) as $now | of("railhead, before"; $verb) as $before |
    "\($verb): \($now | median) ms, before \($before | median) ms, ratio \([range($now | length) | $now[.] / $before[.]] | median)"' "$OUT/lines"
