#!/bin/bash
# railhead-ipam below Debian's main plugins (containernetworking-plugins), in
# network namespaces of its own: ptp, bridge, macvlan. Each pod gets the
# next address, has it on its interface, and gives it back.
#
# usage: main_plugins_test.sh DIRECTORY-OF-RAILHEAD-IPAM     (as root)
set -euo pipefail

bin=$(realpath "${1:?usage: $0 DIRECTORY-OF-RAILHEAD-IPAM}")
plugins=/usr/lib/cni

fail() { echo "FAIL: $*" >&2; exit 1; }

# Everything below happens in a network and a mount namespace of our own, which
# end with this script: the machine's interfaces and /run/netns stay as they are.
if [[ -z ${RAILHEAD_IN_NAMESPACE:-} ]]; then
  [[ $(id -u) == 0 ]] || fail "needs root (namespaces)"
  for need in ptp bridge macvlan; do
    [[ -x $plugins/$need ]] || fail "$plugins/$need is missing: install containernetworking-plugins"
  done
  RAILHEAD_IN_NAMESPACE=1 exec unshare --net --mount --propagation private "$0" "$@"
fi
mount -t tmpfs tmpfs /run
mkdir -p /run/netns
export RAILHEAD_ROOT=/run/root
mkdir -p "$RAILHEAD_ROOT"
ip link set lo up
ip link add parent0 type veth peer name parent1
ip link set parent0 up
ip link set parent1 up

config() {  # main plugin, further fields, ipam
  printf '{"cniVersion": "1.0.0", "name": "net-%s", "type": "%s", %s "ipam": %s}' "$1" "$1" "$2" "$3"
}

cni() {  # command, plugin, namespace, configuration
  CNI_COMMAND=$1 CNI_CONTAINERID=$3 CNI_NETNS=/run/netns/$3 CNI_IFNAME=eth0 CNI_PATH=$bin:$plugins \
    "$plugins/$2" <<< "$4"
}

addresses() { ip -n "$1" -o addr show dev eth0 scope global | awk '{print $4}'; }

expect() {  # what, wanted, got
  [[ $2 == "$3" ]] || fail "$1: wanted '$2', got '$3'"
  echo "ok: $1: $3"
}

third=0
for plugin in ptp bridge macvlan; do
  third=$((third + 1))
  case $plugin in
    ptp) fields='' ;;
    bridge) fields='"bridge": "br0", "isGateway": true,' ;;
    macvlan) fields='"master": "parent0",' ;;
  esac
  ipam='{"type": "railhead-ipam", "subnet": "10.9.'$third'.0/24", "rangeStart": "10.9.'$third'.7",
         "gateway": "10.9.'$third'.1", "routes": [{"dst": "10.77.0.0/16", "gw": "10.9.'$third'.1"}]}'
  conf=$(config $plugin "$fields" "$ipam")
  for i in 1 2; do
    pod=$plugin-$i
    ip netns add "$pod"
    answer=$(cni ADD $plugin "$pod" "$conf") || fail "ADD $pod: $answer"
    [[ $answer == *"10.9.$third.$((6 + i))/24"* ]] || fail "result of $pod: $answer"
    expect "$pod has its address" "10.9.$third.$((6 + i))/24" "$(addresses "$pod")"
    expect "$pod has the route" "10.77.0.0/16 via 10.9.$third.1 dev eth0" \
      "$(ip -n "$pod" route show 10.77.0.0/16 | sed 's/ *$//')"
    check=$(jq -c --argjson result "$answer" '. + {prevResult: $result}' <<< "$conf")
    cni CHECK $plugin "$pod" "$check" || fail "CHECK $pod"
  done
  cni DEL $plugin "$plugin-1" "$conf" || fail "DEL $plugin-1"
  expect "$plugin-1 has no interface" "" "$(addresses "$plugin-1" 2> /dev/null || true)"
  cni DEL $plugin "$plugin-1" "$conf" || fail "second DEL $plugin-1"
  # The released address is in its reuse delay: the next pod gets the one after the last.
  answer=$(cni ADD $plugin "$plugin-1" "$conf") || fail "ADD again: $answer"
  expect "$plugin-1 again has the next address" "10.9.$third.9/24" "$(addresses "$plugin-1")"
done
echo "main_plugins_test: all held"
