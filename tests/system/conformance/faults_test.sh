#!/bin/bash
# faults_test.sh - every check of cni-conformance can fail: faults/faulty, a plugin
# without fault, passes all of them, and with a fault planted fails the right ones.
#
# usage: faults_test.sh -b BIN [FAULT...]        (as root)
# All faults take minutes, so a run without names takes one in twelve, drawn from RAILHEAD_TEST_SEED (1 without
# it); with RAILHEAD_TESTS_ALL=1 all, and each check must be the aim of one.
# exit status: 0 or 1.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ "${1:-}" = -b ] && [ -d "${2:-}" ] || { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 1; }
bin=$(cd "$2" && pwd)
shift 2

# FAULT: the checks that must fail.
faults=$(
    cat <<'END'
version-is-no-json: version.answer
version-needs-input: version.bare
version-is-fixed: version.echo
error-without-code: error.fields
error-without-version: error.version
error-as-text: error.fields process.garbage
crashes-when-refusing: process.garbage environment.no-command add.twice
touches-when-refusing: add.taken-name environment.ifname-long
succeeds-always: @refusals
wrong-code: @codes
takes-host: environment.netns-own
refuses-args: add.args-field
refuses-capabilities: add.runtime-config
refuses-cni-args: add.args
trailing-output: add.output
makes-nothing: add.interface
renames: add.interface
leaves-down: add.up
result-version: @results
result-mac: add.mac
result-mtu: add.mtu
result-no-interface: add.listed chain.own
result-sandbox: add.listed
result-address: add.addresses
result-index: add.index chain.indexes
result-no-index: chain.form result.1.0.0
result-route: add.routes
result-host: add.host
replaces-interface: add.taken-name
second-add-succeeds: add.twice
second-add-releases: add.twice.harmless
refused-leaves: add.taken-name.host
ipam-failure-leaves: add.ipam-missing
failure-sticks: add.after-failure
once-only: del.add-again
chain-forgets: chain.interfaces chain.indexes
chain-forgets-dns: chain.rest
check-sees-nothing: @noticing
check-always-fails: check.after-add
check-speaks: check.silent
check-changes: check.passive
check-changes-host: check.passive
check-fails-chained: chain.check
check-refuses-spared: many.interfaces
del-does-nothing: del.interface del.container del.host
del-forgets-address: del.address
del-speaks: del.silent
del-needs-attachment: del.again del.unknown del.failed-add
del-needs-interface: del.no-interface
del-needs-prev-result: del.no-prev-result del.empty-prev-result
del-needs-netns: del.no-netns
del-needs-living-netns: del.dead-netns del.stale-path
del-keeps-address: del.no-netns.address del.dead-netns.address
dead-leaves-link: del.dead-netns.host
del-takes-first: chain.del
del-takes-all: many.interfaces
del-takes-foreign: del.foreign
leaks-link: del.host
leaves-in-pod: del.container
gc-takes-valid: gc.keeps
gc-takes-networks: gc.other-network
gc-speaks: gc.silent
gc-does-nothing: gc.address
gc-leaves-link: gc.host
gc-fails: gc.del
gc-needs-no-list: gc.no-list gc.wrong-list
gc-in-any-version: gc.old-version
status-always-fails: status.ready
status-asks-nobody: status.delegate
status-in-any-version: status.old-version
never-in-parallel: many.containers many.turnover
reads-one-piece: process.slow-input
reads-64-kib: process.big-input
crashes-without-input: process.closed-input
holds-output: process.pipes
leaves-child: process.children
holds-namespace: process.namespace
END
)
all=$("$bin/cni-conformance" --list | awk '{ print $1 }')
ids_of() { # FAULT: its checks, groups written out
    local word
    for word in $(sed -n "s/^$1: //p" <<<"$faults"); do
        case $word in
            @refusals) grep -E '^(environment|configuration|version\.old|status\.(old|delegate)|gc\.old)' <<<"$all" | grep -v '\.code$' ;;
            @codes) grep -E '\.code$' <<<"$all" ;;
            @results) grep -E '^result\.' <<<"$all" ;;
            @noticing) grep -E '^check\.(.*gone|link-down|mac|prev-result|unknown)$' <<<"$all" ;;
            *) echo "$word" ;;
        esac
    done
}

work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-faults.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/config.json" <<'END'
{ "cniVersion": "1.0.0", "name": "conformance-net", "type": "faulty", "bridge": "cni0", "isGateway": true,
  "ipam": { "type": "host-local", "subnet": "10.88.0.0/16", "routes": [ { "dst": "10.99.0.0/16", "gw": "10.88.0.1" } ] } }
END
findings() { # FAULT ID...: "RESULT ID" lines
    local fault=$1 only=() id settle=1
    [ "$fault" != none ] || settle=10
    shift
    for id in "$@"; do only+=(--only "$id"); done
    "$bin/cni-conformance" --plugin-dir "$here/faults:/usr/lib/cni" --config "$work/config.json" --env "FAULT=$fault" --containers 4 --settle $settle \
        --json "${only[@]}" >"$work/$fault" || [ $? = 1 ] || { echo "FAIL: $fault could not be checked"; return 1; }
    jq -r '.findings[] | "\(.result) \(.id)"' "$work/$fault"
}

complete=''
if [ $# = 0 ]; then
    mapfile -t chosen < <(cut -d: -f1 <<<"$faults")
    if [ -n "${RAILHEAD_TESTS_ALL:-}" ]; then
        complete=1
    else
        seed=${RAILHEAD_TEST_SEED:-1}
        echo "seed $seed"
        mapfile -t chosen < <(printf '%s\n' "${chosen[@]}" | while read -r fault; do
            echo "$(echo "$seed $fault" | md5sum | cut -c1-8) $fault"
        done | LC_ALL=C sort | cut -d' ' -f2 | head -n $((${#chosen[@]} / 12)))
    fi
    set -- "${chosen[@]}"
fi

status=0
aims=()
for fault in "$@"; do
    mapfile -t ids < <(ids_of "$fault")
    [ ${#ids[@]} -gt 0 ] || { echo "FAIL: there is no fault '$fault'"; exit 1; }
    aims+=("${ids[@]}")
    found=$(findings "$fault" "${ids[@]}")
    for id in "${ids[@]}"; do
        grep -qx "FAIL $id" <<<"$found" && continue
        echo "FAIL: $id does not notice '$fault': $(grep -E " ${id//./\\.}\$" <<<"$found")"
        status=1
    done
done
mapfile -t aims < <(printf '%s\n' "${aims[@]}" | LC_ALL=C sort -u)
while read -r line; do
    echo "FAIL: without a fault: $line: $(jq -r --arg id "${line#* }" '.findings[] | select(.id == $id) | .reason' "$work/none")"
    status=1
done < <(findings none "${aims[@]}" | grep -v '^pass ')
if [ -n "$complete" ]; then
    for id in $all; do
        [[ " ${aims[*]} " = *" $id "* ]] || { echo "FAIL: no fault aims at $id"; status=1; }
    done
fi
echo "$# faults, ${#aims[@]} checks"
exit $status
