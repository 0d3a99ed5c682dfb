# shellcheck shell=bash disable=SC2034 # sourced by node.sh, which uses the variables
# config.sh - what an operator writes on a node: fabric.json, CNI configurations; and the cluster network's plugins.
# Two rails; each node owns four addresses of each rail's subnet, so that a leaked one
# is missed at the end. Addresses have no reuse delay here for the same reason.

vlan_of_rail=(100 200)
subnet_of_rail=(10.100.0 10.101.0)
readonly SUPERNET=10.96.0.0/11 PODS=10.244.$NODE
readonly RESOURCE=railhead.io/roce
readonly POD=demo-pod-$NODE

# write_config FAULT: with the fault planted, if it is one of the configuration.
write_config() {
    local vlan=${vlan_of_rail[0]} announce=
    [ "$1$NODE" != vlan1 ] || vlan=150
    [ "$1" != arp ] || announce=', "announce": false'
    mkdir -p /etc/railhead /etc/cni/net.d /opt/cni/bin
    cat >/etc/railhead/fabric.json <<END
{
  "version": 1,
  "rails": [
    { "name": "rail0", "pf": "pf0", "vlan": $vlan, "subnet": "10.100.0.0/24", "gateway": "10.100.0.254",
      "routes": ["$SUPERNET"], "softRoce": true,
      "probeAddresses": { "node0": "10.100.0.1", "node1": "10.100.0.2" },
      "nodeRanges": { "node0": "10.100.0.10-10.100.0.13", "node1": "10.100.0.110-10.100.0.113" } },
    { "name": "rail1", "pf": "pf1", "vlan": ${vlan_of_rail[1]}, "subnet": "10.101.0.0/24", "gateway": "10.101.0.254",
      "routes": ["$SUPERNET"], "softRoce": true,
      "probeAddresses": { "node0": "10.101.0.1", "node1": "10.101.0.2" },
      "nodeRanges": { "node0": "10.101.0.10-10.101.0.13", "node1": "10.101.0.110-10.101.0.113" } }
  ],
  "nodes": { "node0": 0, "node1": 1 },
  "addresses": { "reuseDelaySeconds": 0 },
  "reachability": { "intervalSeconds": 5, "podSeconds": 5 },
  "ncclConfig": { "mode": "required", "env": { "NCCL_DEBUG": "INFO" } }
}
END
    cat >/etc/cni/net.d/10-cluster.conflist <<END
{ "cniVersion": "1.0.0", "name": "cluster", "plugins": [
  { "type": "bridge", "bridge": "cni0", "isGateway": true,
    "ipam": { "type": "host-local", "subnet": "$PODS.0/24", "routes": [ { "dst": "0.0.0.0/0" } ] } } ] }
END
    cat >/etc/cni/net.d/20-railhead.conf <<END
{ "cniVersion": "1.0.0", "name": "railhead", "type": "railhead", "linkTimeoutSeconds": 120, "capabilities": { "deviceID": true }$announce }
END
    local rail
    for rail in 0 1; do
        cat >"/etc/cni/net.d/ipam-rail$rail.conf" <<END
{ "cniVersion": "1.0.0", "name": "probe", "type": "railhead-ipam", "ipam": { "type": "railhead-ipam", "rail": "rail$rail" } }
END
    done
    ln -sf /mnt/cni/bridge /mnt/cni/host-local /opt/cni/bin/
}
