# shellcheck shell=bash disable=SC2154 # sourced by run-guest.sh, whose variables it uses
# Topology "rail": an RDMA GPU server in small.
#   NUMA 0: pxb-pcie 40 - root port - PCIe switch - { PF pf0 43:00.0, "GPU" 44:00.0 }
#   NUMA 1: pxb-pcie 80 - root port - PCIe switch - { PF pf1 83:00.0, "GPU" 84:00.0 }
# PF: Intel 82576 ("igb"), up to 7 VFs.  "GPU": bochs-display, class 0x0380 (no
# emulated device has class 0x0302).  All PFs hang on one Ethernet hub; wire-P.pcap
# in the job directory records what pfP sends and receives, VLAN tags included.
# QEMU's switch has no ACS: a PF and its VFs are one IOMMU group.

# hub_port ID FILE: a port of the hub and the recorder of what passes it.
hub_port() {
    DEV+=(-netdev "hubport,id=$1,hubid=0" -object "filter-dump,id=dump-$1,netdev=$1,file=$job/$2")
}

rail() { # INDEX
    local i=$1 mac
    printf -v mac '52:54:00:00:%02x:%02x' "$node" "$i"
    hub_port "w$i" "wire-$i.pcap"
    DEV+=(-device "pxb-pcie,id=pxb$i,bus_nr=$((0x40 + 0x40 * i)),numa_node=$i,bus=pcie.0,addr=1$i"
        -device "pcie-root-port,id=rp$i,bus=pxb$i,chassis=$((10 + i)),slot=0"
        -device "x3130-upstream,id=up$i,bus=rp$i"
        -device "xio3130-downstream,id=dn$i.0,bus=up$i,chassis=$((20 + 10 * i)),slot=0"
        -device "xio3130-downstream,id=dn$i.1,bus=up$i,chassis=$((21 + 10 * i)),slot=1"
        -device "igb,id=pf$i,bus=dn$i.0,netdev=w$i,mac=$mac"
        -device "bochs-display,id=gpu$i,bus=dn$i.1,vgamem=4M") # 4M is the least
}

DEV+=(-object "memory-backend-ram,id=m0,size=$((mem / 2))M" -object "memory-backend-ram,id=m1,size=$((mem / 2))M"
    -smp "$cpus,sockets=$cpus" -numa node,nodeid=0,memdev=m0,cpus=0 -numa node,nodeid=1,memdev=m1,cpus=1)
rail 0
rail 1
