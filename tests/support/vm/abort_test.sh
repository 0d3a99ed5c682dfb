#!/bin/bash
# abort_test.sh - run-guest.sh with a QEMU that aborts or stops as the real one does now and then: the guest
# begins anew, but not for ever, and not when QEMU dies of anything else or when its time is up.
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
read -r aborts message <"$STANDIN_STATE"
if [ "$aborts" -gt 0 ]; then
    echo "$((aborts - 1)) $message" >"$STANDIN_STATE"
    [ "$message" != stops ] || exec sleep 1000
    echo "qemu-system-x86_64: $message" >&2
    ulimit -c 0
    kill -ABRT $$
fi
job=$(printf '%s\n' "$@" | sed -n 's/^local,path=\(.*\),mount_tag=job,.*/\1/p')
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
exit $failed
