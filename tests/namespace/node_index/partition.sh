#!/bin/bash
# partition.sh TEST - nine network namespaces on one bridge: n1 for the Kubernetes API (10.77.0.1), n11..n18 for
# nodes (10.77.0.11..18), and TEST among them (10.77.0.254). Taking port vN of the bridge down cuts nN off.
# Needs root; everything is in a namespace of its own and goes with it.
set -euo pipefail
if [ -z "${RAILHEAD_IN_NAMESPACE:-}" ]; then
    [ "$(id -u)" = 0 ] || { echo "partition.sh: needs root" >&2; exit 1; }
    RAILHEAD_IN_NAMESPACE=1 exec unshare --net --mount --propagation private "$0" "$@"
fi
mount -t tmpfs tmpfs /run
mkdir /run/netns
ip link set lo up
ip link add bridge type bridge
ip addr add 10.77.0.254/24 dev bridge
ip link set bridge up
for n in 1 {11..18}; do
    ip netns add "n$n"
    ip link add "v$n" type veth peer name eth0 netns "n$n"
    ip link set "v$n" master bridge up
    ip -n "n$n" addr add "10.77.0.$n/24" dev eth0
    ip -n "n$n" link set eth0 up
    ip -n "n$n" link set lo up
done
exec "$1"
