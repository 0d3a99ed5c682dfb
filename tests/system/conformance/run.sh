#!/bin/bash
# run.sh - cni-conformance on Debian's plugins and on ours; the failures of each are
# compared with those that are recorded in expected/, so that a change is noticed.
#
# usage: run.sh -b BIN [-u] [-v] [TARGET...]        (as root; default: all targets)
#   -b BIN   directory of cni-conformance, railhead, railhead-ipam and stand_in_nics
#   -u       record what fails now
#   -v       print every check
# exit status: 0 as recorded; 1 something else fails, or nothing could be checked.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly PEERS=/usr/lib/cni
readonly TARGETS=(bridge ptp macvlan host-device host-local railhead railhead-ipam bridge+railhead-ipam)
usage() { sed -n '2,/^set /p' "$here/run.sh" | sed '$d; s/^# \?//' >&2; exit 1; }

bin='' update='' verbose=''
while getopts b:uv flag; do
    case $flag in
        b) bin=$(cd "$OPTARG" && pwd) ;;
        u) update=1 ;;
        v) verbose=1 ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ -n "$bin" ] || usage
[ $# -gt 0 ] || set -- "${TARGETS[@]}"
work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-conformance.XXXXXX")
trap 'rm -rf "$work"' EXIT

# ---- the targets ---------------------------------------------------------------------
readonly HOST_LOCAL='{"type": "host-local", "subnet": "10.88.0.0/16", "routes": [{"dst": "10.99.0.0/16", "gw": "10.88.0.1"}]}'
readonly OWN_IPAM='{"type": "railhead-ipam", "subnet": "10.88.0.0/16", "gateway": "10.88.0.1", "reuseDelaySeconds": 0,
                    "routes": [{"dst": "10.99.0.0/16", "gw": "10.88.0.1"}]}'
config() { # type, further fields with a comma at the end, ipam
    printf '{"cniVersion": "1.0.0", "name": "conformance-net", "type": "%s", %s "ipam": %s}\n' "$1" "$2" "$3"
}

# The options of one target, in `options`.
describe() {
    options=(--plugin-dir "$PEERS:$bin" --config "$work/$1.json")
    case $1 in
        bridge) config bridge '"bridge": "cni0", "isGateway": true,' "$HOST_LOCAL" ;;
        ptp) config ptp '' "$HOST_LOCAL" ;;
        macvlan)
            config macvlan '"master": "wire0",' "$HOST_LOCAL"
            options+=(--prepare 'ip link add wire0 type veth peer name wire1; ip link set wire0 up; ip link set wire1 up')
            ;;
        host-device)
            config host-device '' "$HOST_LOCAL"
            options+=(--prepare "'$bin/stand_in_nics' serve /run/root 16"
                --setup "'$bin/stand_in_nics' await \$CONFORMANCE_SLOT; echo '{\"device\": \"nic'\$CONFORMANCE_SLOT'\"}'")
            ;;
        host-local) config host-local '' "$HOST_LOCAL" && options+=(--kind ipam) ;;
        railhead-ipam) config railhead-ipam '' "$OWN_IPAM" && options+=(--kind ipam --env RAILHEAD_ROOT=/run/root) ;;
        bridge+railhead-ipam)
            config bridge '"bridge": "cni0", "isGateway": true,' "$OWN_IPAM"
            options+=(--env RAILHEAD_ROOT=/run/root)
            ;;
        railhead) # a made-up sysfs says that the devices are NICs on PCI
            config railhead '"announce": false, "gateway": "10.88.0.1", "routes": ["10.99.0.0/16"], "table": 100,' "$OWN_IPAM"
            options+=(--env RAILHEAD_ROOT=/run/root
                --prepare "'$bin/stand_in_nics' serve /run/root 16 >/run/addresses"
                --setup "'$bin/stand_in_nics' await \$CONFORMANCE_SLOT
                    echo '{\"deviceID\": \"'\$(sed -n \$((CONFORMANCE_SLOT + 1))p /run/addresses)'\"}'")
            ;;
        *) echo "run.sh: there is no target '$1'; there are: ${TARGETS[*]}" >&2; exit 1 ;;
    esac >"$work/$1.json"
}

# ---- runs ------------------------------------------------------------------------------
status=0
for target in "$@"; do
    describe "$target"
    code=0
    "$bin/cni-conformance" "${options[@]}" --json >"$work/report" || code=$?
    [ $code -le 1 ] || { echo "run.sh: $target could not be checked" >&2; exit 1; }
    jq -r '.findings[] | select(.result == "FAIL") | "\(.severity) \(.id)"' "$work/report" >"$work/failed"
    if [ -n "$verbose" ]; then
        jq -r '.findings[] | "\(.result) \(.severity) \(.id): \(.title)", (select(.reason != "") | "     \(.reason)")' "$work/report"
    fi
    jq -r --arg t "$target" '[.findings[] | {severity, result}] as $f | def n($s; $r): [$f[] | select(.severity == $s and .result == $r)] | length;
        "| \($t) | \(.version) | \(n("MUST"; "pass")) / \(n("MUST"; "FAIL")) | \(n("SHOULD"; "pass")) / \(n("SHOULD"; "FAIL")) | \(n("extra"; "pass")) / \(n("extra"; "FAIL")) | \([$f[] | select(.result == "n/a")] | length) |"' "$work/report"
    if [ -n "$update" ]; then
        cp "$work/failed" "$here/expected/$target"
    elif ! diff -u --label "recorded failures of $target" --label now "$here/expected/$target" "$work/failed"; then
        jq -r '.findings[] | select(.result == "FAIL") | "\(.id): \(.reason)"' "$work/report"
        status=1
    fi
done
exit $status
