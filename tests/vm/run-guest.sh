#!/bin/bash
# run-guest.sh - boot a guest, run one script in it, print the script's output and
# return its exit status.  Needs no root and no KVM: QEMU emulates (about 8 s).
#
# usage: run-guest.sh [options] SCRIPT [ARG...]
#   -b DIR       build tree, /mnt/build in the guest ($BUILD); read-only
#   -s NAME=DIR  share DIR as /mnt/NAME, read-only; may be repeated
#   -S DIR       share DIR as /mnt/sync ($SYNC), writable: where guests meet
#   -o DIR       keep the job directory ($OUT in the guest) as DIR: rc, console.log,
#                wire-P.pcap, leaf-P.pcap and whatever the script writes there
#   -t SECONDS   limit (default 180)
#   -T TOPOLOGY  a name or path of a file of topology/ (default rail)
#   -i N         number of the node, 0..255 (default 0): $NODE; its host name is nodeN
#   -w NETDEV    join the guest's Ethernet hub to another one (see run-pair.sh)
#   -m MB -c N   memory (default 512), CPUs (default 2)
#   -I           process 1 is systemd, and dpkg is there: a host that packages are installed on
#   -a ARGS      more arguments for the kernel
#   -v           print the kernel's console at the end, on stderr
# The repository is always shared, as /mnt/src ($SRC).
# exit status: that of SCRIPT; 124 limit reached; 125 no guest, or it died.
#
# The limit is for the emulation, which shares the machine with everything else:
# choose it generously.  When this script ends, however it ends, so does QEMU.
set -euo pipefail
# shellcheck disable=SC2034 # the topology reads variables of this script

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 125; }
die() { echo "run-guest.sh: $*" >&2; exit 125; }

names=(src) dirs=("$repo")
out='' limit=180 topology=rail node=0 mem=512 cpus=2 wire='' append='' verbose='' system=''
while getopts b:s:S:o:t:T:i:w:m:c:a:Iv flag; do
    case $flag in
        b) names+=(build) dirs+=("$OPTARG") ;;
        s) names+=("${OPTARG%%=*}") dirs+=("${OPTARG#*=}") ;;
        S) names+=(sync) dirs+=("$OPTARG") ;;
        o) out=$OPTARG ;;
        t) limit=$OPTARG ;;
        T) topology=$OPTARG ;;
        i) node=$OPTARG ;;
        w) wire=$OPTARG ;;
        m) mem=$OPTARG ;;
        c) cpus=$OPTARG ;;
        a) append+=" $OPTARG" ;;
        I) system=1 append+=' guest.init=systemd' ;;
        v) verbose=1 ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
[ -r "$1" ] || die "cannot read the script '$1'"
[ -r "$topology" ] || topology=$here/topology/$topology.sh
[ -r "$topology" ] || die "no topology '$topology'"
command -v qemu-system-x86_64 >/dev/null || die "no qemu-system-x86_64 (8.0 or later): run tests/setup.sh"
for dir in "${dirs[@]}"; do [ -d "$dir" ] || die "cannot share '$dir': no such directory"; done
guest=$("$here/build-guest.sh")
[ -z "$system" ] || { names+=(system) && dirs+=("$guest/system"); }

# ---- job directory ---------------------------------------------------------------
temporary='' qemu='' job=''
clean_up() {
    [ -z "$qemu" ] || { kill "$qemu" 2>/dev/null && wait "$qemu" 2>/dev/null; } || true
    [ -z "$job" ] || rm -f "$job"/monitor.*
    [ -z "$temporary" ] || rm -rf "$temporary"
}
trap clean_up EXIT
trap 'exit 125' INT TERM HUP
if [ -n "$out" ]; then
    mkdir -p "$out"
    job=$(cd "$out" && pwd)
else
    job=$(mktemp -d "${TMPDIR:-/tmp}/railhead-guest.XXXXXX")
    temporary=$job
fi
rm -f "$job"/rc "$job"/uptime "$job"/monitor.*
install -m 755 "$1" "$job/script"
shift
{
    echo '#!/bin/bash'
    echo "export OUT=/mnt/job SRC=/mnt/src BUILD=/mnt/build SYNC=/mnt/sync NODE=$node"
    printf 'exec /mnt/job/script'
    [ $# = 0 ] || printf ' %q' "$@"
    echo
} >"$job/run"
chmod 755 "$job/run"

# The guest talks to QEMU's monitor itself, over a serial port: two pipes whose ends are
# the one's input and the other's output. It can cut its own cables (lib.sh's cable).
mkfifo -m 600 "$job/monitor.in" "$job/monitor.out"
ln -s monitor.out "$job/monitor.port.in"
ln -s monitor.in "$job/monitor.port.out"

# ---- machine ---------------------------------------------------------------------
# shellcheck source=tests/vm/topology/rail.sh
DEV=() && . "$topology"
[ -z "$wire" ] || DEV+=(-netdev "$wire,id=joint" -netdev hubport,id=jointport,hubid=0,netdev=joint)
shared_names=$(IFS=, && echo "${names[*]}")
shares=(-virtfs "local,path=$job,mount_tag=job,security_model=none")
for i in "${!names[@]}"; do
    mode=,readonly=on,multidevs=remap
    [ "${names[i]}" != sync ] || mode=
    shares+=(-virtfs "local,path=${dirs[i]},mount_tag=${names[i]},security_model=none$mode")
done
# no_timer_check: that check measures time and panics a guest on a busy host.
# la57=off, mitigations=off, nokaslr, nowatchdog: cheaper to emulate, no false alarms.
Q=(qemu-system-x86_64 -nodefaults -no-user-config -no-reboot -display none
    -machine q35,kernel-irqchip=split -accel tcg,thread=multi -cpu max,la57=off -m "$mem"
    -device intel-iommu,intremap=on,caching-mode=on
    -kernel "$guest/kernel-image" -initrd "$guest/initrd.cpio"
    -append "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off nokaslr nowatchdog random.trust_cpu=on intel_iommu=on net.ifnames=0 guest.name=node$node guest.shares=$shared_names $append"
    -serial "file:$job/console.log"
    -device virtio-serial-pci,max_ports=2 -chardev stdio,id=console,signal=off -device virtconsole,chardev=console
    -chardev "pipe,id=monitor,path=$job/monitor" -mon chardev=monitor,mode=control
    -chardev "pipe,id=port,path=$job/monitor.port" -device virtserialport,chardev=port,name=railhead.monitor
    -object rng-random,id=rng0,filename=/dev/urandom -device virtio-rng-pci,rng=rng0
    "${shares[@]}" "${DEV[@]}") # shares first: without a bus they take the newest one

# ---- run -------------------------------------------------------------------------
# boot: sets status to QEMU's. pdeathsig twice: timeout dies with this shell and QEMU with timeout,
# SIGKILL included.
boot() {
    status=0
    setpriv --pdeathsig TERM timeout --foreground -k 5 "$limit" setpriv --pdeathsig KILL \
        "${Q[@]}" </dev/null 2>"$job/qemu.log" &
    qemu=$!
    wait "$qemu" || status=$?
    qemu=''
}
# QEMU's virtual CPUs fill their TLBs while another one changes what the IOMMU maps, which QEMU 8 to 10
# now and then take for a fault of their own: they abort. No guest is to blame, so it begins anew;
# not one of a pair, whose other half has gone on.
died_of_itself() {
    [ "$status" = 134 ] && [ ! -s "$job/rc" ] && [ -z "$wire" ] &&
        grep -q "iotlb_to_section: Assertion" "$job/qemu.log"
}
for attempt in 1 2 3; do
    boot
    if [ "$attempt" = 3 ] || ! died_of_itself; then break; fi
    echo "run-guest.sh: node$node: QEMU has aborted (iotlb_to_section); the guest begins anew" >&2
done
[ -z "$verbose" ] || cat "$job/console.log" >&2
if [ -s "$job/rc" ]; then exit "$(cat "$job/rc")"; fi
if [ "$status" = 124 ]; then
    echo "run-guest.sh: node$node: the limit of $limit s is reached" >&2
    exit 124
fi
{
    echo "run-guest.sh: node$node died (QEMU's status $status); QEMU and the end of the console said:"
    grep -v 'is not connected to host network' "$job/qemu.log" || true
    tail -30 "$job/console.log" || true
} >&2
exit 125
