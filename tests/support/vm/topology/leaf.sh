# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "leaf": topology "rail" and one more NIC on the same hub, leaf0 in the
# guest, for the leaf router that lib.sh's leaf_router makes of it.  Its frames are
# in leaf-0.pcap: what the switch sees of both rails and of all joined nodes.
# shellcheck source=tests/support/vm/topology/rail.sh
. "$here/topology/rail.sh"
hub_port l0 leaf-0.pcap
DEV+=(-device "virtio-net-pci,id=leaf0,bus=pcie.0,addr=18,netdev=l0,romfile=,mac=$(printf '52:54:00:01:%02x:00' "$node")")
