# shellcheck shell=bash disable=SC2034,SC2154 # sourced by node.sh, which sets and uses the variables
# config.sh - what an operator writes on a node: fabric.json, CNI configurations; and the cluster network's plugins.
# Two rails. flat: each is one network, of which each node owns four addresses, so that a leaked one is missed at
# the end. routed: each node has networks of its own behind the leaf, one of eight addresses, one of two; a node's VLANs
# keep all frames from the other node. Addresses have no reuse delay here, so that each can be handed out at the end.

readonly SUPERNET=10.96.0.0/11 PODS=10.244.$NODE
readonly RESOURCE=railhead.io/roce
readonly POD=demo-pod-$NODE

# By rail: what the fabric gives this node. far: an address that pods reach through the leaf.
case $fabric in
    flat)
        vlan_of_rail=(100 200) gateway_of_rail=(10.100.0.254 10.101.0.254) length_of_rail=(24 24)
        first_of_rail=("10.100.0.$((NODE * 100 + 10))" "10.101.0.$((NODE * 100 + 10))") count_of_rail=(4 4)
        peers_of_rail=(1 1) far_of_rail=(10.110.0.1 10.110.0.1)
        leaf_of_rails=(100 10.100.0.254/24 200 10.101.0.254/24)
        ;;
    routed)
        vlan_of_rail=($((100 + NODE * 10)) $((200 + NODE * 10)))
        gateway_of_rail=("10.100.0.$((NODE * 8 + 6))" "10.101.0.$((NODE * 2))") length_of_rail=(29 31)
        first_of_rail=("10.100.0.$((NODE * 8 + 1))" "10.101.0.$((NODE * 2 + 1))") count_of_rail=(4 1)
        # A network of two addresses has none for a probe endpoint.
        peers_of_rail=(1 0) far_of_rail=("10.100.0.$((9 - NODE * 8))" "10.101.0.$((3 - NODE * 2))")
        leaf_of_rails=(100 10.100.0.6/29 110 10.100.0.14/29 200 10.101.0.0/31 210 10.101.0.2/31)
        [ "$fault" != segment ] || leaf_of_rails=("${leaf_of_rails[@]:0:6}" 210 10.101.0.4/31)
        ;;
esac

# Both say the rest alike.
fabric_flat() { # VLAN
    cat <<END
  "rails": [
    { "name": "rail0", "pf": "pf0", "vlan": $1, "subnet": "10.100.0.0/24", "gateway": "10.100.0.254",
      "routes": ["$SUPERNET"], "softRoce": true,
      "probeAddresses": { "node0": "10.100.0.1", "node1": "10.100.0.2" },
      "nodeRanges": { "node0": "10.100.0.10-10.100.0.13", "node1": "10.100.0.110-10.100.0.113" } },
    { "name": "rail1", "pf": "pf1", "vlan": ${vlan_of_rail[1]}, "subnet": "10.101.0.0/24", "gateway": "10.101.0.254",
      "routes": ["$SUPERNET"], "softRoce": true,
      "probeAddresses": { "node0": "10.101.0.1", "node1": "10.101.0.2" },
      "nodeRanges": { "node0": "10.101.0.10-10.101.0.13", "node1": "10.101.0.110-10.101.0.113" } }
  ],
END
}
fabric_routed() { # MORE, of node1's rail0
    cat <<END
  "rails": [
    { "name": "rail0", "pf": "pf0", "subnet": "10.100.0.0/24", "nodeSubnet": 29, "gateway": "last",
      "routes": "rails", "probeAddresses": "last", "softRoce": true },
    { "name": "rail1", "pf": "pf1", "subnet": "10.101.0.0/24", "nodeSubnet": 31, "gateway": "other",
      "routes": "rails", "softRoce": true }
  ],
  "nodeGroups": [
    { "name": "port0", "nodes": "node0", "rails": { "rail0": { "vlan": 100 }, "rail1": { "vlan": 200 } } },
    { "name": "port1", "nodes": "node1", "rails": { "rail0": { "vlan": 110$1 }, "rail1": { "vlan": 210 } } }
  ],
END
}

# write_config: with the fault planted, if it is one of the configuration.
write_config() {
    local vlan=${vlan_of_rail[0]} announce='' more=''
    [ "$fault$NODE" != vlan1 ] || vlan=150
    [ "$fault" != arp ] || announce=', "announce": false'
    [ "$fault" != segment ] || more=', "routes": []'
    mkdir -p /etc/railhead /etc/cni/net.d /opt/cni/bin
    {
        echo '{'
        echo '  "version": 1,'
        if [ "$fabric" = flat ]; then fabric_flat "$vlan"; else fabric_routed "$more"; fi
        cat <<END
  "nodes": { "node0": 0, "node1": 1 },
  "addresses": { "reuseDelaySeconds": 0 },
  "reachability": { "intervalSeconds": 5, "podSeconds": 5 },
  "ncclConfig": { "mode": "required", "env": { "NCCL_DEBUG": "INFO" } }
}
END
    } >/etc/railhead/fabric.json
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
