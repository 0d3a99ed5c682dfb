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
#   -k SUITE     the kernel of this suite of Debian (build-guest.sh)
#   -A arm64     a guest of this architecture, with topology leaves or none: it has no systemd (-I), and cannot be asked at its limit
#   -I           process 1 is systemd, and dpkg is there: a host that packages are installed on
#   -a ARGS      more arguments for the kernel
#   -v           print the kernel's console at the end, on stderr
# The repository is always shared, as /mnt/src ($SRC).
# exit status: that of SCRIPT; 124 limit reached; 125 no guest, or it died; 126 with -w, the emulator failed: begin anew.
#
# The limit is for the emulation, which shares the machine with everything else:
# choose it generously.  When this script ends, however it ends, so does QEMU.
# A guest that is still at its limit is asked what its processes wait for.
set -euo pipefail
# shellcheck disable=SC2034 # the topology reads variables of this script

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../../.." && pwd)
# shellcheck source=tests/setup.sh
. "$repo/tests/setup.sh"
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 125; }
die() { echo "run-guest.sh: $*" >&2; exit 125; }

silence=${RAILHEAD_GUEST_SILENCE:-120} # looks, of 2 s
names=(src) dirs=("$repo")
out='' limit=180 topology=rail node=0 mem=512 cpus=2 wire='' append='' verbose='' system='' architecture=amd64 kernel=()
while getopts b:s:S:o:t:T:i:w:m:c:a:k:A:Iv flag; do
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
        k) kernel+=(--kernel "$OPTARG") ;;
        A) architecture=$OPTARG kernel+=(--arch "$OPTARG") ;;
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
if [ "$architecture" = amd64 ]; then program='qemu-system-x86_64'; else program='qemu-system-aarch64'; fi
version=$("$program" --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p') || true
[ "${version:-0}" -ge 8 ] || die "guests need $program 8.0 or later for their NICs, and there is ${version:-none}${version:+.x}:" \
    'run tests/setup.sh, which installs it from bookworm-backports; for arm64 install qemu-system-arm from there'
for dir in "${dirs[@]}"; do [ -d "$dir" ] || die "cannot share '$dir': no such directory"; done
guest=$("$here/build-guest.sh" "${kernel[@]}")
[ -z "$system" ] || { names+=(system) && dirs+=("$guest/system"); }

# ---- job directory ---------------------------------------------------------------
temporary='' qemu='' job=''
clean_up() {
    [ -z "$qemu" ] || { kill -KILL "$qemu" 2>/dev/null && wait "$qemu" 2>/dev/null; } || true
    [ -z "$job" ] || rm -f "$job"/life "$job"/{monitor,control}.*
    [ -z "$temporary" ] || rm -rf "$temporary"
}
trap clean_up EXIT
trap 'exit 125' INT TERM HUP
trap 'railhead_why "" "${job:-${out:-${TMPDIR:-/tmp}}}"; die "the guest has no folder that can be written: ${job:-${out:-${TMPDIR:-/tmp}}}"' ERR
if [ -n "$out" ]; then
    mkdir -p "$out"
    job=$(cd "$out" && pwd)
else
    job=$(mktemp -d "${TMPDIR:-/tmp}/railhead-guest.XXXXXX")
    temporary=$job
fi
rm -f "$job"/{rc,uptime,alive,life} "$job"/{monitor,control}.*
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
# Another monitor is for this script.
mkfifo -m 600 "$job/monitor.in" "$job/monitor.out" "$job/control.in" "$job/control.out" "$job/life"
ln -s monitor.out "$job/monitor.port.in"
ln -s monitor.in "$job/monitor.port.out"
trap - ERR

# ---- machine ---------------------------------------------------------------------
# shellcheck source=tests/support/vm/topology/rail.sh
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
# la57=off, mitigations=off, nokaslr, nowatchdog: cheaper to emulate, no false alarms. With pcid a fork takes twice as
# long under emulation; with erms and fsrm the kernel clears and copies pages by single bytes.
# sysrq_always_enabled: for explain.
# arm64: cortex-a76 costs three quarters of max. highmem-mmio=off: QEMU loses the upper half of a VF's addresses.
case $architecture in
    amd64)
        console=ttyS0 machine=(-machine q35,kernel-irqchip=split -accel tcg,thread=multi -cpu max,la57=off,pcid=off,invpcid=off,erms=off,fsrm=off -m "$mem"
            -device intel-iommu,intremap=on,caching-mode=on)
        firmware=(-chardev "file,id=bios,path=$job/bios.log" -device isa-debugcon,iobase=0x402,chardev=bios)
        ;;
    arm64)
        console=ttyAMA0 machine=(-machine virt,gic-version=3,iommu=smmuv3,highmem-mmio=off -accel tcg,thread=multi -cpu cortex-a76 -m "$mem")
        firmware=()
        ;;
esac
Q=("$program" -nodefaults -no-user-config -no-reboot -display none -name "node$node,debug-threads=on" "${machine[@]}"
    -kernel "$guest/kernel-image" -initrd "$guest/initrd.cpio"
    -append "console=$console quiet panic=-1 no_timer_check mitigations=off nokaslr nowatchdog random.trust_cpu=on intel_iommu=on net.ifnames=0 sysrq_always_enabled guest.name=node$node guest.shares=$shared_names $append"
    -serial "file:$job/console.log" "${firmware[@]}"
    -device virtio-serial-pci,max_ports=2 -chardev stdio,id=console,signal=off -device virtconsole,chardev=console
    -chardev "pipe,id=monitor,path=$job/monitor" -mon chardev=monitor,mode=control
    -chardev "pipe,id=port,path=$job/monitor.port" -device virtserialport,chardev=port,name=railhead.monitor
    -chardev "pipe,id=control,path=$job/control" -mon chardev=control,mode=readline
    -object rng-random,id=rng0,filename=/dev/urandom -device virtio-rng-pci,rng=rng0
    "${shares[@]}" "${DEV[@]}") # shares first: without a bus they take the newest one

# ---- run -------------------------------------------------------------------------
# boot: sets status to QEMU's, or to 124 at the limit, or to 'silent' when the whole guest has stopped: guest-init.sh
# writes to "alive" every few seconds. Looks are counted, not seconds: this machine itself may have slept.
boot() {
    local life look=0 now='' last='' still=0
    status=0
    : >"$job/console.log"
    # pdeathsig: QEMU dies with this shell, SIGKILL included; and whatever ends it, the pipe ends with it.
    setpriv --pdeathsig KILL "${Q[@]}" </dev/null 7>"$job/life" 2>"$job/qemu.log" &
    qemu=$!
    exec {life}<"$job/life"
    while read -rt 2 -u "$life" || look=$?; [ "$look" -gt 128 ]; do
        { read -r now <"$job/alive"; } 2>/dev/null || true
        if [ "$now" = "$last" ]; then still=$((still + 1)); else still=0; fi
        last=$now
        if [ $((SECONDS - begun)) -ge "$limit" ]; then status=124; elif [ "$still" -ge "$silence" ]; then status=silent; else continue; fi
        explain >&2 || true
        kill -KILL "$qemu"
        break
    done
    exec {life}<&-
    if [ "$status" = 0 ]; then wait "$qemu" || status=$?; else wait "$qemu" 2>/dev/null || true; fi
    qemu=''
}
# explain: of a guest that goes on or has stopped, whose fault that is: what its CPUs do (l), who waits in the kernel (w),
# and where every process is (t, shown a line for each); if the kernel shows nothing, what QEMU's threads do.
explain() {
    local control key size=-1 new same=0 up='not come up'
    if [ -s "$job/alive" ]; then up="$(cat "$job/alive") s of its own time"; fi
    echo "run-guest.sh: node$node: after $((SECONDS - begun)) s, $up. Its kernel:"
    exec {control}<>"$job/control.in"
    for key in 9 l w t; do echo "sendkey alt-sysrq-$key" >&"$control"; done
    while new=$(stat -c %s "$job/console.log") && [ "$same" -lt 5 ]; do
        if [ "$new" = "$size" ]; then same=$((same + 1)); else same=0; fi
        size=$new
        sleep 1
    done
    exec {control}>&-
    sed '/sysrq: Show State/,$d' "$job/console.log" | grep -vE ' (R[A-Z0-9]{2}|[CF]S|CR2|PKRU|Code|Tainted|Hardware name|RSP):' | tail -n 100
    sed '1,/sysrq: Show State/d' "$job/console.log" | awk "$processes"
    [ -s "$job/console.log" ] || { echo 'nothing; the firmware said last:' && tail -n 3 "$job/bios.log" && echo; }
    echo "QEMU's threads, their state and CPU time:" && ps -L -o comm=,stat=,time=,wchan= -p "$qemu"
}
# Those of the kernel itself have 2 for a parent.
# shellcheck disable=SC2016 # awk's
processes='
function show() { if (task != "") print task ":" where; task = "" }
/ task:/ { show(); where = ""; n = 0; sub(/^.* task:/, ""); if ($0 !~ / (ppid|pid):2 /) { task = $0; gsub(/ stack:[^ ]*| tgid:[^ ]*| task_flags.*/, "", task) } }
/\+0x/ && !/ \? / && !/schedule|RIP/ && n < 6 { sub(/\+0x.*/, ""); sub(/^.* /, ""); where = where " " $0; n++ }
END { show() }'
# An assertion of QEMU's own fails now and then: its virtual CPUs fill their TLBs while another one changes what is
# mapped (iotlb_to_section, and, where the stale section exists by chance, msix_table_mmio_write of a device that nobody
# wrote to). Or a CPU runs code that it translated while another one patched it, and traps at a breakpoint that is gone:
# the kernel, which takes its own breakpoints back before it ends a patch (text_poke_bp_batch), dies of "int3".
# No guest is to blame, so it begins anew, as one does that has stopped altogether.
# Of a pair, the other half has gone on, so run-pair.sh begins with both.
failure_of_emulator() {
    [ ! -s "$job/rc" ] || return
    case $status in
        silent) echo 'the guest has stopped' ;;
        134) assertion=$(grep -m 1 ': Assertion .* failed' "$job/qemu.log") && echo "QEMU has aborted: $assertion" ;;
        0) grep -q ' int3: 0000 ' "$job/console.log" && echo 'the kernel met a breakpoint that it had taken back' ;;
        *) false ;;
    esac
}
begun=$SECONDS
for attempt in 1 2 3; do
    boot
    why=$(failure_of_emulator) || break
    [ -z "$wire" ] || { echo "run-guest.sh: node$node: $why" >&2 && exit 126; }
    [ "$attempt" != 3 ] || break
    echo "run-guest.sh: node$node: $why; it begins anew" >&2
    rm -f "$job"/{uptime,alive}
done
[ -z "$verbose" ] || cat "$job/console.log" >&2
railhead_why '' "$job"
if [ -s "$job/rc" ]; then exit "$(cat "$job/rc")"; fi
case $status in
    124) echo "run-guest.sh: node$node: the limit of $limit s is reached" >&2; exit 124 ;;
    silent) die "node$node has stopped: no heartbeat for $((2 * silence)) s" ;;
esac
{
    echo "run-guest.sh: node$node died (QEMU's status $status); QEMU and the end of the console said:"
    grep -v 'is not connected to host network' "$job/qemu.log" || true
    tail -60 "$job/console.log" || true
} >&2
exit 125
