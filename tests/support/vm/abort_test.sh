#!/bin/bash
# abort_test.sh - run-guest.sh with a QEMU that aborts, stops or spoils its guest as the real one does now and then: the
# guest begins anew, but not for ever, and not when QEMU or the guest dies of anything else or when its time is up.
# Of a pair, both begin anew.
# exit status: 0, or 1 with what was not so.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-abort.XXXXXX")
trap 'rm -rf "$work"' EXIT
export STANDIN_STATE=$work/state
mkdir "$work/bin"
# It aborts (or stops) as often as the state says, with that message; then it is a guest whose script succeeds.
cat >"$work/bin/qemu-system-x86_64" <<'END'
#!/bin/bash
[ "${1:-}" != --version ] || { echo 'QEMU emulator version 10.0.0'; exit; }
job=$(printf '%s\n' "$@" | sed -n 's/^local,path=\(.*\),mount_tag=job,.*/\1/p')
case " $* " in *' -name node1,'*) node=1 ;; *) node=0 ;; esac
echo "$node" >>"$STANDIN_STATE.started"
# Of a pair, node 1 is the one that fails, once node 0 is there, which waits for its last start.
started() { grep -c "$1" "$STANDIN_STATE.started"; }
if [ -e "$STANDIN_STATE.pair" ]; then
    until [ "$(started 0)" = "$(started 1)" ]; do sleep 0.1; done
    [ "$node" = 1 ] || { until [ "$(started 1)" = "$(cat "$STANDIN_STATE.pair")" ]; do sleep 0.1; done && echo 0 >"$job/rc" && exit; }
fi
read -r aborts message <"$STANDIN_STATE"
if [ "$aborts" -gt 0 ]; then
    echo "$((aborts - 1)) $message" >"$STANDIN_STATE"
    [ "$message" != stops ] || exec sleep 1000
    [[ $message != panics* ]] || { echo "[    2.809225] Oops:${message#panics}" >"$job/console.log"; exit 0; }
    echo "qemu-system-x86_64: $message" >&2
    ulimit -c 0
    kill -ABRT $$
fi
echo 0 >"$job/rc"
END
chmod 755 "$work/bin/qemu-system-x86_64"
export PATH=$work/bin:$PATH
echo true >"$work/script"

failed=0
# expect STATUS ABORTS MESSAGE [OPTION...]
expect() {
    local status=0
    echo "$2 $3" >"$STANDIN_STATE"
    "$here/run-guest.sh" "${@:4}" "$work/script" >"$work/log" 2>&1 || status=$?
    [ "$status" = "$1" ] && return
    echo "exit status $status instead of $1 after $2 x '$3':"
    cat "$work/log"
    failed=1
}
section='system/physmem.c:2678: iotlb_to_section: Assertion `section_index < d->map.sections_nb'"'"' failed.'
expect 0 0 "$section"
expect 0 1 "$section"
expect 0 2 "$section"
expect 125 3 "$section"
table='hw/pci/msix.c:228: msix_table_mmio_write: Assertion `addr + size <= dev->msix_entries_nr * PCI_MSIX_ENTRY_SIZE'"'"' failed.'
expect 0 1 "$table"
grep -qF "$table" "$work/log" || { echo 'the assertion is not shown:'; cat "$work/log"; failed=1; }
expect 125 1 'double free or corruption (out)'
export RAILHEAD_GUEST_SILENCE=2
expect 0 1 stops
grep -q 'sleep  *S' "$work/log" || { echo 'the threads are not shown:'; cat "$work/log"; failed=1; }
expect 124 1 stops -t 1
expect 0 2 'panics int3: 0000 [#1] SMP NOPTI'
expect 125 3 'panics int3: 0000 [#1] SMP NOPTI'
expect 125 1 'panics general protection fault, maybe for address 0x0: 0000 [#1] SMP NOPTI'
# expect_pair STATUS ABORTS MESSAGE STARTS: of node 1.
expect_pair() {
    local status=0
    echo "$2 $3" >"$STANDIN_STATE"
    echo "$4" >"$STANDIN_STATE.pair"
    : >"$STANDIN_STATE.started"
    "$here/run-pair.sh" "$work/script" >"$work/log" 2>&1 || status=$?
    [ "$status" = "$1" ] && [ "$(grep -c 1 "$STANDIN_STATE.started")" = "$4" ] && [ "$(grep -c 0 "$STANDIN_STATE.started")" = "$4" ] && return
    echo "a pair: exit status $status instead of $1 after $2 x '$3'; these nodes started: $(paste -sd " " "$STANDIN_STATE.started")"
    cat "$work/log"
    failed=1
}
expect_pair 0 0 "$section" 1
expect_pair 0 1 "$section" 2
expect_pair 0 2 'panics int3: 0000 [#1] SMP NOPTI' 3
expect_pair 126 3 "$section" 3
expect_pair 125 1 'double free or corruption (out)' 1
exit $failed
