# shellcheck shell=bash
# report.sh - what the demo's scripts say in a guest, and to the table of demo.sh: every check is
# printed and written to $OUT/results as "STATUS<tab>KEY<tab>WHAT", STATUS one of ok, FAIL, skip.
# Checks that cannot hold after another one failed are skipped, so that the table names the
# cause and not its echoes.

step() { echo "== $*"; }
row() { printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$OUT/results"; }
# held KEY WHAT COMMAND...: one check, one row.
held() {
    local key=$1 what=$2
    shift 2
    if "$@" >/tmp/held.log 2>&1; then
        row ok "$key" "$what"
        echo "ok    $what"
    else
        row FAIL "$key" "$what"
        echo "FAIL  $what"
        tail -n 12 /tmp/held.log | sed 's/^/        /'
        return 1
    fi
}
skipped() { row skip "$1" "$2"; echo "skip  $2"; }
# need WHAT COMMAND...: without it the demo makes no sense; the node gives up.
need() {
    local what=$1
    shift
    "$@" && return
    row FAIL start "$what"
    echo "FAIL  $what"
    tail -n 20 "$OUT"/railheadd.log "$OUT"/kubelet.log 2>/dev/null
    exit 1
}
show() { sed 's/^/      /'; }
