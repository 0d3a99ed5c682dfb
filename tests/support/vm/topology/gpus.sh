# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "gpus": topology "rail" with a second GPU on each switch, 45:00.0 and 85:00.0:
# which VF is beside a GPU is then no matter of counting.
# shellcheck source=tests/support/vm/topology/rail.sh
. "$here/topology/rail.sh"
for rail in 0 1; do
    DEV+=(-device "xio3130-downstream,id=dn$rail.2,bus=up$rail,chassis=$((22 + 10 * rail)),slot=2"
        -device "bochs-display,id=gpu$((2 + rail)),bus=dn$rail.2,vgamem=4M")
done
