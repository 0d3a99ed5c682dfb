#!/bin/bash
# node.sh - the part of the benchmarks about railheadd with 1,024 VFs: looking at the node,
# Allocate, preferred allocation, memory, idle time, hot plug; and about railctl doctor
# there; and /metrics/nics with all of them in pods, and who waits for that.
# bench/run.sh calls it.
# Needs root.
#
# usage: node.sh -b BIN [-n VFS] [-d ROUNDS] [-a ROUNDS] [-i SECONDS] [-o FILE] [-r]
#   -b BIN      directory of the project's programs
#   -n VFS      on each of eight PFs (default 128)
#   -d ROUNDS   of discovery and doctor (default 30); a third of it of hot plug
#   -a ROUNDS   of Allocate and preferred allocation (default 2000)
#   -i SECONDS  of watching the idle daemon (default 90)
#   -o FILE     append the measurements to FILE
#   -r          report them at the end
# exit status: 0 measured; not 0 when something could not be.
#
# The node is a made-up sysfs on a tmpfs; its network devices are there, as veth in a
# network namespace of their own, since asking the kernel about them is part of the work.
# What railheadd keeps below /var/lib is on the disk of TMPDIR, but for its own work.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^$/p;/^set /q' "$here/node.sh" | sed '/^set /d; s/^# \?//' >&2; exit 2; }
die() { echo "bench/node.sh: $*" >&2; exit 1; }

bin='' vfs=128 discoveries=30 allocations=2000 idle=90 out='' report=''
arguments=("$@")
while getopts b:n:d:a:i:o:r flag; do
    case $flag in
        b) bin=$(cd "$OPTARG" && pwd) ;;
        n) vfs=$OPTARG ;;
        d) discoveries=$OPTARG ;;
        a) allocations=$OPTARG ;;
        i) idle=$OPTARG ;;
        o) out=$(realpath -m "$OPTARG") ;;
        r) report=1 ;;
        *) usage ;;
    esac
done
[ -n "$bin" ] || usage
for program in railheadd railctl kubelet-standin bench_runner railhead_node_bench; do
    [ -x "$bin/$program" ] || die "there is no $bin/$program: run bench/run.sh, which builds it"
done

# ---- into the namespaces -------------------------------------------------------------
if [ -z "${RAILHEAD_BENCH_INSIDE:-}" ]; then
    [ "$(id -u)" = 0 ] || die "network namespaces need root"
    RAILHEAD_BENCH_INSIDE=1 exec unshare --net --mount --propagation private "$here/node.sh" "${arguments[@]}"
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-node.XXXXXX")
disk=$(mktemp -d "${TMPDIR:-/tmp}/railhead-node-disk.XXXXXX")
clean_up() {
    umount "$work" 2>/dev/null || true
    rmdir "$work"
    rm -rf "$disk"
}
trap clean_up EXIT
mount -t tmpfs -o size=512m tmpfs "$work"
lines=${out:-$work/lines}
bench=$bin/railhead_node_bench

# tree NAME OPTIONS...: a node below $work/NAME; prints its network devices.
tree() {
    mkdir -p "$work/$1/var/lib"
    "$here/node.py" tree --programs "$bin" --root "$work/$1" --vfs-per-pf "$vfs" "${@:2}"
}

ip link set lo up
# Two by two: pairs of veth. There is an even number of them.
tree a | paste - - | sed 's/\(.*\)\t\(.*\)/link add \1 type veth peer name \2/' | ip -batch -
tree b --late >/dev/null
mkdir "$disk/a" "$disk/b"
mv "$work/b/var/lib" "$disk/b/lib"
ln -s "$disk/b/lib" "$work/b/var/lib"

# ---- measure ------------------------------------------------------------------------------
"$bench" work --root "$work/a" --disk "$disk/a" --out "$lines" --rounds "$discoveries" \
    --allocations "$allocations" --preferences "$allocations"
"$here/node.py" daemon --programs "$bin" --root "$work/a" --vfs-per-pf "$vfs" --out "$lines" \
    --allocations "$allocations" --preferences $((allocations / 4 + 1)) \
    --changes $((discoveries / 3 + 1)) --idle "$idle"
"$here/node.py" daemon --late --programs "$bin" --root "$work/b" --vfs-per-pf "$vfs" --out "$lines" \
    --changes $((discoveries / 10 + 1)) --idle $((idle / 3))
tree c >/dev/null
ulimit -n 4096 # a namespace is a descriptor
"$bench" nics --root "$work/c" --out "$lines" --rounds "$discoveries"
"$here/node.py" doctor --programs "$bin" --root "$work/a" --out "$lines" --rounds "$discoveries"
[ -z "$report" ] || "$here/report.py" --no-host --no-guest --no-ipam "$lines"
