# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "rail", and eth0 to the host: 10.96.0.1 there is the host's loopback, and its 10.96.0.15:10250 is the kubelet of the guest
# of node 0; that of node 1 is 10.96.0.16.
# shellcheck source=tests/support/vm/topology/rail.sh
. "$repo/tests/support/vm/topology/rail.sh"
# Without I/O ports, of which the bridges leave none.
own=10.96.0.$((15 + node)):10250
DEV+=(-netdev "user,id=nat,net=10.96.0.0/24,host=10.96.0.1,dhcpstart=10.96.0.100,hostfwd=tcp:$own-$own"
    -device "virtio-net-pci,netdev=nat,bus=pcie.0,disable-legacy=on,romfile=,mac=52:55:00:00:00:00")
