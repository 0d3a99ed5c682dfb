#!/bin/bash
# host.sh - the part of the benchmarks that needs no guest: start-up, ADD and DEL with
# stand-ins in namespaces, the daemon's memory.  bench/run.sh calls it.  Needs root.
#
# usage: host.sh -b BIN [-n ROUNDS] [-s ROUNDS] [-o FILE] [-r]
#   -b BIN     directory of the project's programs
#   -n ROUNDS  of ADD and DEL (default 30)
#   -s ROUNDS  of start-up (default 200)
#   -o FILE    append the measurements to FILE
#   -r         report them at the end
# exit status: 0 measured; not 0 when something could not be.
#
# All of it happens in a network and a mount namespace of its own, below a tmpfs, so
# that nothing of the machine is touched and nothing is left.  The devices are veth
# pairs; a made-up sysfs says that they are VFs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^$/p' "$here/host.sh" | sed 's/^# \?//' >&2; exit 2; }
die() { echo "bench/host.sh: $*" >&2; exit 1; }

bin='' rounds=30 startup_rounds=200 out='' report=''
arguments=("$@")
while getopts b:n:s:o:r flag; do
    case $flag in
        b) bin=$(cd "$OPTARG" && pwd) ;;
        n) rounds=$OPTARG ;;
        s) startup_rounds=$OPTARG ;;
        o) out=$(realpath -m "$OPTARG") ;;
        r) report=1 ;;
        *) usage ;;
    esac
done
[ -n "$bin" ] || usage
readonly PEERS=/usr/lib/cni
for program in "$bin/railhead" "$bin/railhead-ipam" "$bin/bare_attach" "$bin/bench_runner" \
    "$bin/railhead_nccl_config_bench" "$bin/railhead_node_bench" "$PEERS/host-device"; do
    [ -x "$program" ] || die "there is no $program: run bench/run.sh, which builds and installs what is needed"
done

# ---- into the namespaces -------------------------------------------------------------
if [ -z "${RAILHEAD_BENCH_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || die "network namespaces need root"
    RAILHEAD_BENCH_INSIDE=1 exec unshare --net --mount --propagation private "$here/host.sh" "${arguments[@]}"
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-bench.XXXXXX")
started=()
clean_up() {
    local pid
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    umount "$work" 2>/dev/null || true
    rmdir "$work"
}
trap clean_up EXIT
mount -t tmpfs -o size=256m tmpfs "$work"
mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns
lines=${out:-$work/lines}

# ---- stand-ins -------------------------------------------------------------------------
ip link set lo up
mapfile -t bdfs < <("$bin/railhead_node_bench" pf --root "$work/root" --vfs 16)
# link NAME: a veth whose other end is up, so that it has carrier wherever it is.
link() { ip link add "$1" type veth peer name "$1-wire" && ip link set "$1-wire" up; }
for name in pf0 vf0 vf1 vf2; do link "$name"; done
ip link set pf0 up
for i in 0 1 2 3 4; do ip netns add "bench-$i" && ip -n "bench-$i" link set lo up; done
mkdir -p "$work/root/etc/railhead"
"$here/fabric.sh" node0 '' >"$work/root/etc/railhead/fabric.json"
echo node0 >"$work/root/etc/railhead/node-name"

# ---- measure ------------------------------------------------------------------------------
"$here/measure.py" startup --programs "$bin" --group startup --rounds "$startup_rounds" --out "$lines" \
    "$bin/railhead" "$bin/railhead-ipam" "$PEERS/host-device" "$PEERS/host-local"
"$here/measure.py" attach --group stand-ins --rounds "$rounds" --out "$lines" \
    --programs "$bin" --peers "$PEERS" --root "$work/root" --scratch "$work/scratch" \
    --device "bare=vf0,${bdfs[0]},pf0,0" --device "railhead=vf1,${bdfs[1]},pf0,1" \
    --device "host-device=vf2,${bdfs[2]},pf0,2"

mkdir "$work/nccl_config"
"$bin/railhead_nccl_config_bench" "$work/nccl_config" "$bin" "$rounds" "$lines"

# The daemon, registered with a kubelet and idle.
if [ -x "$bin/railheadd" ] && [ -x "$bin/kubelet-standin" ]; then
    kubelet=$work/root/k # paths of sockets are short
    mkdir -p "$kubelet"
    "$bin/kubelet-standin" serve --dir "$kubelet" >"$work/kubelet.log" 2>&1 &
    started+=($!)
    RAILHEAD_ROOT=$work/root "$bin/railheadd" --kubelet-dir /k >"$work/railheadd.log" 2>&1 &
    daemon=$!
    started+=("$daemon")
    for ((i = 0; i < 600; i++)); do
        [ ! -S "$kubelet/control.sock" ] || break
        sleep 0.1
    done
    "$bin/kubelet-standin" devices --dir "$kubelet" railhead.io/roce --wait 16 --timeout 60 >/dev/null ||
        { cat "$work/railheadd.log" "$work/kubelet.log" >&2; die "railheadd did not register its 16 VFs"; }
    "$here/measure.py" daemon --out "$lines" "$(awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status")"
else
    echo "bench/host.sh: no railheadd or kubelet-standin in $bin: the daemon is not measured" >&2
fi
[ -z "$report" ] || "$here/report.py" --no-guest --no-node --no-ipam "$lines"
