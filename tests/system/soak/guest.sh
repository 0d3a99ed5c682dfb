#!/bin/bash
# guest.sh - the part of tests/system/soak that runs in a guest of tests/support/vm.
# usage: guest.sh ARG...     for soak (run.sh calls it)
#
# Rail 0's VFs are given to pods by their address, rail 1's by slots of late binding. /run/railhead
# is a small file system of its own, so that it can be full.
set -eu
# shellcheck source=tests/support/vm/lib.sh
. "$SRC/tests/support/vm/lib.sh"

die() { echo "tests/system/soak/guest.sh: $*" >&2; exit 2; }
readonly VFS=7 REUSE_DELAY=5
bin=/tmp/bin
kubelet=/run/kubelet-standin
log=/tmp/railheadd.log
export PATH=$bin:$PATH
mkdir -p "$bin" /etc/railhead /run/railhead "$kubelet" /var/lib/kubelet/device-plugins
cp "$BUILD"/bin/{railhead,railhead-ipam,railheadd,kubelet-standin,soak} "$bin/"
mount -t tmpfs -o size=4m,mode=755 tmpfs /run/railhead
# Each namespace has its own RDMA devices. If it had a copy of all others' (netns_mode 1), the kernel would use the
# namespace of a copy after its end when a soft RoCE device goes (kobject_uevent_env, from disable_device), and
# would make no namespace at all at such a moment (rxe_query_port: ENODEV).
modprobe ib_core netns_mode=0 || die "no RDMA subsystem"
modprobe -a rdma_rxe ib_uverbs || die "no modules for soft RoCE"

devices=()
for pf in 0 1; do
    make_vfs "pf$pf" "$VFS" || die "pf$pf gets no VFs"
    for ((i = 0; i < VFS; i++)); do
        give_vf_mac "pf$pf" "$i" "02:00:00:00:0$pf:0$i" || die "VF $i of pf$pf has no MAC"
        ip link set "$(vf_netdev "pf$pf" "$i")" name "soak$((pf * VFS + i))" || die "VF $i of pf$pf cannot be renamed"
    done
done
# A pod may have a MAC of its own only where the gateway answers with another one.
leaf_router 100 10.100.0.254/24 200 10.101.0.254/24 || die "no leaf router"
for ((i = 0; i < VFS; i++)); do devices+=("$(vf_pci pf0 "$i")=soak$i"); done

rail() { # NUMBER
    cat <<RAIL
{ "name": "rail$1", "pf": "pf$1", "vlan": 100, "softRoce": true, "mtu": 1500,
  "subnet": "10.10$1.0.0/24", "gateway": "10.10$1.0.254", "routes": ["10.96.0.0/11"], "table": 10$1,
  "nodeRanges": { "$(uname -n)": "10.10$1.0.2-10.10$1.0.253" } }
RAIL
}
cat >/etc/railhead/fabric.json <<FABRIC
{ "version": 1, "rails": [ $(rail 0), $(rail 1) ],
  "addresses": { "reuseDelaySeconds": $REUSE_DELAY, "minReuseDelaySeconds": $REUSE_DELAY },
  "policy": { "networks": [ { "allow": ["*"], "devices": "any" } ] },
  "pools": [ { "resource": "railhead.io/early", "rails": ["rail0"] },
             { "resource": "railhead.io/late", "rails": ["rail1"], "binding": "late" } ] }
FABRIC

# kubelet's slots are allocated once: each of them is a pod's after another.
kubelet-standin serve --dir "$kubelet" >/tmp/kubelet.log 2>&1 &
within 60 test -S "$kubelet/control.sock" || die "no stand-in of kubelet"
daemon=("$bin/railheadd" --kubelet-dir "$kubelet" --reconcile-interval 2)
"${daemon[@]}" >"$log" 2>&1 &
allocate() { kubelet-standin allocate --dir "$kubelet" railhead.io/late "$VFS" >/tmp/slots; }
within 120 allocate || { cat "$log"; die "railheadd offers no slots"; }
kill "$!"
wait "$!" || die "railheadd ends with status $?"
mapfile -t slots < <(jq -r '.devices | sort | .[]' /tmp/slots)
[ ${#slots[@]} = "$VFS" ] || die "railheadd offers other slots than $VFS: ${slots[*]}"

# What a program died of is kept beside the logs.
ulimit -c unlimited
echo "$OUT/core.%e.%p" >/proc/sys/kernel/core_pattern
config='"cniVersion": "1.1.0", "name": "soak", "type": "railhead", "linkTimeoutSeconds": 60, "previousDelTimeoutSeconds": 5, "conflictProbeMs": 0'
status=0
soak --programs "$bin" --netns /run/netns --hardware --reuse-delay "$REUSE_DELAY" --config "{ $config, SETTINGS\"deviceID\": \"DEVICE\" }" \
    --daemon "${daemon[*]}" --log "$log" --device "${devices[@]}" --slot "${slots[@]}" "$@" || status=$?
if [ "$status" != 0 ]; then
    dmesg | grep -E 'segfault|general protection|traps:|Oops|RIP: 0010' | tail -n 10 || true
    echo "railheadd said last:"
    tail -n 30 "$log"
fi
cp "$log" "$OUT/railheadd.log"
exit "$status"
