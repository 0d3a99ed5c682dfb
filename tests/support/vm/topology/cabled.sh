# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "cabled": topology "rail", but pf0 and pf1 have a cable each, w0 and w1, to the NICs leaf0 and leaf1 of the
# guest, for scripts that want leaf switches beside GPUs and PCIe switches.
# shellcheck source=tests/support/vm/topology/rail.sh
. "$here/topology/rail.sh"
for i in 0 1; do
    printf -v mac '52:54:00:01:%02x:%02x' "$node" "$i"
    DEV=("${DEV[@]/id=w$i,hubid=0/id=w$i,hubid=$((10 + i))}")
    DEV+=(-netdev "hubport,id=l$i,hubid=$((10 + i))" -device "virtio-net-pci,id=leaf$i,bus=pcie.0,addr=1$((4 + i)),netdev=l$i,romfile=,mac=$mac")
done
