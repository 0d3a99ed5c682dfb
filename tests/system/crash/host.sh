#!/bin/bash
# host.sh - the part of tests/system/crash that needs no guest: the real programs on stand-ins.
# run.sh calls it.  Needs root.
#
# usage: host.sh -b BIN COMMAND [ARG...]
#   -b BIN   directory of the project's programs
#   sweep    ARG...: for crash_sweep run (--percent, --seed, --variant, ...)
#   two      the same with both rails in one call
#   peer     ARG...: as for sweep; Debian's host-device, whose exceptions are counted
#   stress   ARG...: for crash_stress
#   daemon   ARG...: for crash_daemon (--percent, --seed, --scenario, ...)
#   soak     ARG...: for soak of tests/system/soak (--seconds, --seed, ...)
# exit status: the program's.
#
# All of it happens in network and mount namespaces of its own, below a tmpfs, so that
# nothing of the machine is touched and nothing is left.  The devices are veth pairs,
# whose other ends are in a namespace that stands for the wire; a made-up sysfs says
# that they are VFs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^$/p' "$here/host.sh" | sed 's/^# \?//' >&2; exit 2; }
die() { echo "tests/system/crash/host.sh: $*" >&2; exit 2; }

[ "${1:-}" = -b ] && [ $# -ge 3 ] || usage
bin=$(cd "$2" && pwd)
for program in railhead railhead-ipam railheadd crash_daemon crash_sweep crash_stress; do
    [ -x "$bin/$program" ] || die "there is no $bin/$program: run tests/system/crash/run.sh, which builds what is needed"
done
if [ -z "${RAILHEAD_CRASH_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || die "network namespaces need root"
    RAILHEAD_CRASH_INSIDE=1 exec unshare --net --mount --propagation private "$here/host.sh" "$@"
fi
command=$3
shift 3

work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-crash.XXXXXX")
trap 'umount "$work" && rmdir "$work"' EXIT
mount -t tmpfs -o size=256m tmpfs "$work"
mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns

# ---- stand-ins -------------------------------------------------------------------------
declare -A bdf=()
while read -r name address; do bdf[$name]=$address; done < <("$bin/crash_sweep" fake-root "$work/root")
# No IPv6 on the host: the kernel brings its routes and addresses up to a second after a link
# is up, and every try would have to wait for them.
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip netns add wire
{
    echo "link set lo up"
    for name in pf0 pf1 "${!bdf[@]}"; do
        echo "link add $name type veth peer name $name netns wire"
    done
    echo "link set pf0 up"
    echo "link set pf1 up"
} | ip -batch -
for name in pf0 pf1 "${!bdf[@]}"; do echo "link set $name up"; done | ip -n wire -batch -
for name in first other; do ip netns add "$name" && ip -n "$name" link set lo up; done
# What has to come back: another MTU and name than the driver's, an alias, an altname.
{
    echo "link set pf0v0 mtu 1400 alias first txqueuelen 777"
    echo "link property add dev pf0v0 altname stand-in-of-pf0v0"
    echo "link set pf1v0 mtu 1450 up"
} | ip -batch -
mkdir -p "$work/root/etc/railhead"
"$here/fabric.sh" node0 '' >"$work/root/etc/railhead/fabric.json"
echo node0 >"$work/root/etc/railhead/node-name"

# ---- the work --------------------------------------------------------------------------
version=1.0.0
[ "$command" != soak ] || version=1.1.0 # with GC
config='"cniVersion": "'$version'", "name": "crash", "type": "railhead", "linkTimeoutSeconds": 120, "previousDelTimeoutSeconds": 0, "conflictProbeMs": 20'
sweep=("$bin/crash_sweep" run --programs "$bin" --root "$work/root" --pod /run/netns/first --other /run/netns/other)
sweep+=(--daemon "$bin/railheadd")
case $command in
    sweep) "${sweep[@]}" --label stand-ins --config "{ $config, \"deviceID\": \"${bdf[pf0v0]}\" }" "$@" ;;
    two) "${sweep[@]}" --label "two stand-ins" --config "{ $config, \"devices\": [\"${bdf[pf0v0]}\", \"${bdf[pf1v0]}\"] }" "$@" ;;
    peer)
        # With the alias that host-device leaves behind in any case.
        restore="ip -n wire link del pf0v0; ip netns del first; ip netns add first; ip -n first link set lo up
            ip link add pf0v0 address 02:00:00:00:00:01 type veth peer name pf0v0 netns wire &&
                ip link set pf0v0 alias pf0v0 && ip -n wire link set pf0v0 up"
        bash -c "$restore"
        "$bin/crash_sweep" run --programs /usr/lib/cni --type host-device --root "$work/root" \
            --pod /run/netns/first --other /run/netns/other --label host-device --restore "$restore" \
            --config "{ \"cniVersion\": \"1.0.0\", \"name\": \"crash\", \"type\": \"host-device\", \"device\": \"pf0v0\" }" \
            --variant add-del del-del "$@" ;;
    stress)
        "$bin/crash_stress" --programs "$bin" --root "$work/root" --netns /run/netns --label stand-ins \
            --config "{ $config, \"deviceID\": \"DEVICE\" }" --device "${bdf[@]}" "$@" ;;
    daemon)
        "$bin/crash_daemon" --programs "$bin" --root "$work/root" --pod /run/netns/first --other /run/netns/other "$@" ;;
    soak)
        [ -x "$bin/soak" ] || die "there is no $bin/soak: run tests/system/soak/run.sh, which builds what is needed"
        mkdir -p "$work"/root/{kubelet,var/lib/kubelet/device-plugins}
        devices=()
        for name in "${!bdf[@]}"; do devices+=("${bdf[$name]}=$name"); done
        "$bin/soak" --programs "$bin" --root "$work/root" --netns /run/netns --log "$work/railheadd.log" \
            --config "{ $config, SETTINGS\"deviceID\": \"DEVICE\" }" --device "${devices[@]}" \
            --daemon "$bin/railheadd --kubelet-dir /kubelet --reconcile-interval 2" "$@" || { status=$? && tail -n 30 "$work/railheadd.log" && exit "$status"; } ;;
    *) usage ;;
esac
