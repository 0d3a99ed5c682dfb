#!/bin/bash
# manifests.sh RAILHEADD - unit, DaemonSet and documentation give the same capabilities; systemd, where there
# is one, takes the unit; the options that they give are railheadd's. (All else of the DaemonSet: tests/system/manifests.)
set -euo pipefail
railheadd=$1
cd "$(dirname "$0")/../../.."
unit=manifests/railheadd.service daemonset=manifests/base/daemonset.yaml
failed=0
problem() { echo "manifests.sh: $*" >&2; failed=1; }
# same WHAT A B: sets of words
same() {
    [ -n "$2" ] || problem "$1: nothing found"
    [ "$2" = "$3" ] || problem "$1: '$2' here, '$3' there"
}
sorted() { tr -s ' ,' '\n' | sort -u | tr '\n' ' '; }

of_unit=$(sed -n 's/^CapabilityBoundingSet=//p' $unit | sorted)
of_daemonset=$(sed -n 's/^ *add: \[\(.*\)\]$/\1/p' $daemonset | sed 's/[A-Z_]\+/CAP_&/g' | sorted)
# shellcheck disable=SC2016 # the backquotes are the document's
of_docs=$(sed -n 's/^| `\(CAP_[A-Z_]*\)` |.*/\1/p' docs/reference/permissions.md | sorted)
same "capabilities of unit and DaemonSet" "$of_unit" "$of_daemonset"
same "capabilities of unit and docs/reference/permissions.md" "$of_unit" "$of_docs"
grep -q '^AmbientCapabilities=$' $unit || problem "$unit gives ambient capabilities"
grep -q '^ *drop: \[ALL\]$' $daemonset || problem "$daemonset does not drop ALL"
grep -q '^NoNewPrivileges=yes$' $unit || problem "$unit allows new privileges"

calls_of_unit=$(sed -n 's/^SystemCallFilter=//p' $unit | sorted)
calls_of_profile=$(jq -r '.syscalls[].names[]' manifests/seccomp/railheadd.json | sorted)
same "system calls of unit and manifests/seccomp" "$calls_of_unit" "$calls_of_profile"
# Where kubelet has the list, by default in both installations.
[ "$(grep -c '^ *seccompProfile: { type: Localhost, localhostProfile: railhead/railheadd.json }$' $daemonset)" = 1 ] ||
    problem "$daemonset: railheadd does not run under its own list"
grep -q '^seccomp: railhead$' manifests/helm/railhead/values.yaml || problem "values.yaml: railheadd does not run under its own list"
same "answers to other system calls" "$(sed -n 's/^SystemCallErrorNumber=//p' $unit)" \
    "$(jq -r 'if .defaultErrnoRet == 38 then "ENOSYS" else .defaultErrnoRet end' manifests/seccomp/railheadd.json)"
# Whatever railheadd will do one day, these are not for it: they load code, look into others, or reach files past
# all paths.
for call in bpf ptrace init_module finit_module kexec_load open_by_handle_at process_vm_readv process_vm_writev perf_event_open \
    userfaultfd keyctl pivot_root chroot reboot swapon settimeofday mknod mknodat setuid capset personality io_uring_setup; do
    [[ " $calls_of_profile " != *" $call "* ]] || problem "manifests/seccomp lists $call"
done

address=$(sed -n 's/^ *args: \["--http-address=\(.*\)"\]$/\1/p' $daemonset)
"$railheadd" --http-address="$address" --help >/dev/null || problem "railheadd does not take --http-address=$address"

if command -v systemd-analyze >/dev/null; then
    copy=$(mktemp -d)
    trap 'rm -rf "$copy"' EXIT
    # The program need not be installed here.
    sed "s|^ExecStart=.*|ExecStart=$railheadd|" $unit >"$copy/railheadd.service"
    said=$(systemd-analyze verify --man=no "$copy/railheadd.service" 2>&1 | grep railheadd.service || true)
    [ -z "$said" ] || problem "systemd-analyze verify: $said"
    # 0 is best, 10 worst; an ordinary service has 9.6.
    if exposure=$(systemd-analyze security --offline=true --threshold=40 "$copy/railheadd.service" 2>&1); then :; else
        problem "systemd-analyze security: $(tail -n 1 <<<"$exposure")"
    fi
fi
exit $failed
