# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "leaves": four PFs, pf0 to pf3, each with a cable of its own to a NIC of the guest, leaf0 to leaf3,
# for scripts that make leaf switches of those. w0 to w3 are the cables (lib.sh's cable).
# No PCIe switches, no GPUs, no captures.

wired() { # INDEX
    local i=$1 pf leaf
    printf -v pf '52:54:00:00:%02x:%02x' "$node" "$i"
    printf -v leaf '52:54:00:01:%02x:%02x' "$node" "$i"
    DEV+=(-netdev "hubport,id=w$i,hubid=$((10 + i))" -netdev "hubport,id=l$i,hubid=$((10 + i))"
        -device "pcie-root-port,id=rp$i,bus=pcie.0,addr=1$i,chassis=$((10 + i)),slot=$i"
        -device "igb,id=pf$i,bus=rp$i,netdev=w$i,mac=$pf"
        -device "virtio-net-pci,id=leaf$i,bus=pcie.0,addr=1$((4 + i)),netdev=l$i,romfile=,mac=$leaf")
}

DEV+=(-smp "$cpus")
for i in 0 1 2 3; do wired "$i"; done
