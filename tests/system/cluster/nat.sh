# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "rail", and eth0 to the host: 10.96.0.1 there is the host's loopback, and its 10.96.0.15:10250 is the guest's kubelet.
# shellcheck source=tests/support/vm/topology/rail.sh
. "$repo/tests/support/vm/topology/rail.sh"
# Without I/O ports, of which the bridges leave none.
DEV+=(-netdev "user,id=nat,net=10.96.0.0/24,host=10.96.0.1,dhcpstart=10.96.0.100,hostfwd=tcp:10.96.0.15:10250-10.96.0.15:10250"
    -device "virtio-net-pci,netdev=nat,bus=pcie.0,disable-legacy=on,romfile=,mac=52:55:00:00:00:00")
