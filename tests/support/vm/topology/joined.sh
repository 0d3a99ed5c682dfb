# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "joined": topology "cabled", and a NIC leaf2 on the hub of joined guests: the wire between the halves that
# each guest has of the leaf switches.
# shellcheck source=tests/support/vm/topology/cabled.sh
. "$here/topology/cabled.sh"
DEV+=(-netdev "hubport,id=l2,hubid=0" -device "virtio-net-pci,id=leaf2,bus=pcie.0,addr=18,netdev=l2,romfile=,mac=$(printf '52:54:00:01:%02x:02' "$node")")
