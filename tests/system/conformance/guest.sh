#!/bin/bash
# guest.sh - cni-conformance on railhead with real VFs; runs in a guest of tests/support/vm.
# usage: guest.sh [ID...]     (default: the checks that a device makes different)
# exit status: that of cni-conformance.
set -eu
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"

die() { echo "tests/system/conformance/guest.sh: $*" >&2; exit 3; }
[ $# -gt 0 ] || set -- add result check del chain gc many process
only=()
for id in "$@"; do only+=(--only "$id"); done
bin=/tmp/bin
mkdir -p "$bin"
cp "$BUILD"/bin/{railhead,railhead-ipam,cni-conformance} "$bin/"
modprobe veth || die "no veth" # other plugins' interfaces
make_vfs pf0 7 || die "no VFs"
for ((i = 0; i < 7; i++)); do
    give_vf_mac pf0 "$i" "02:00:00:00:00:0$i" || die "VF $i has no MAC"
    vf_pci pf0 "$i"
done >/tmp/addresses
cat >/tmp/config.json <<'END'
{ "cniVersion": "1.1.0", "name": "conformance-net", "type": "railhead", "vlan": 100, "spoofchk": "on", "linkTimeoutSeconds": 120,
  "gateway": "10.88.0.1", "routes": ["10.99.0.0/16"], "table": 100, "conflictProbeMs": 0,
  "ipam": { "type": "railhead-ipam", "subnet": "10.88.0.0/16", "gateway": "10.88.0.1", "reuseDelaySeconds": 0 } }
END
# shellcheck disable=SC2016 # the suite's variable
exec "$bin/cni-conformance" --here --plugin-dir "$bin" --config /tmp/config.json --containers 6 --settle 30 "${only[@]}" \
    --setup 'address=$(sed -n $((CONFORMANCE_SLOT + 1))p /tmp/addresses)
        until [ -e /sys/bus/pci/devices/$address/net ]; do sleep 0.1; done
        echo "{\"deviceID\": \"$address\"}"'
