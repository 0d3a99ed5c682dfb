# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "isolated": topology "rail" without its PCIe switches, which have no ACS: each PF hangs on a root port, which
# has, so that every function has an IOMMU group of its own and a VF may be given to a program.
#   NUMA 0: pxb-pcie 40 - root port - PF pf0 41:00.0
#   NUMA 1: pxb-pcie 80 - root port - PF pf1 81:00.0
for i in 0 1; do
    printf -v mac '52:54:00:00:%02x:%02x' "$node" "$i"
    DEV+=(-netdev "hubport,id=w$i,hubid=0" -object "filter-dump,id=dump-w$i,netdev=w$i,file=$job/wire-$i.pcap"
        -device "pxb-pcie,id=pxb$i,bus_nr=$((0x40 + 0x40 * i)),numa_node=$i,bus=pcie.0,addr=1$i"
        -device "pcie-root-port,id=rp$i,bus=pxb$i,chassis=$((10 + i)),slot=0"
        -device "igb,id=pf$i,bus=rp$i,netdev=w$i,mac=$mac")
done
DEV+=(-object "memory-backend-ram,id=m0,size=$((mem / 2))M" -object "memory-backend-ram,id=m1,size=$((mem / 2))M"
    -smp "$cpus,sockets=$cpus" -numa node,nodeid=0,memdev=m0,cpus=0 -numa node,nodeid=1,memdev=m1,cpus=1)
