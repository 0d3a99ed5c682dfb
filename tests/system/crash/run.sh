#!/bin/bash
# run.sh - processes killed at every system call, and many pods at once with random kills:
# afterwards everything has to be as before, bit for bit.
#
# usage: tests/system/crash/run.sh [--all] [--seed N] [-b BUILD] [PART...]
#   --all     every call of every process instead of a sample (hours in the guest), and
#             1,000 pods
#   --seed N  of the sample; default: RAILHEAD_TEST_SEED, or 1
#   -b BUILD  take the programs of this build tree; default: build "release" first
# Parts, default all:
#   sweep         ADD and DEL of one device on stand-ins: veth pairs in namespaces
#   two           the same with a device of each of two rails in one call
#   planted       a missing step of DEL is planted: the sweep has to find it
#   peer          the sweep on Debian's host-device, to compare: what it leaves is counted
#   daemon        railheadd killed at every change that it makes, and started again
#   stress        200 pods by 16 workers on 14 stand-ins, with kills
#   guest         the sweep on a real VF, with all settings and soft RoCE
#   guest-mac     on a VF whose driver has to be bound again for its MAC
#   guest-two     on a VF of each of two rails in one call
#   guest-planted the VLAN and rates of a VF are not put back: the sweep has to find it
#   guest-5_10    the sweep on a real VF of Debian 11's kernel, without soft RoCE
#   guest-stress  200 pods by 16 workers on 14 VFs, with kills
# Needs root for the parts on this machine.  What is killed and what follows:
# tests/system/crash/sweep.h, daemon_sweep.h and stress.h.
# exit status: 0 no exception; 1 at least one, the first is shown; 2 could not be run.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup.sh
. "$here/../../setup.sh"
usage() { sed -n '2,/^set /p' "$here/run.sh" | sed '$d; s/^# \?//'; }

all='' build='' parts=()
seed=${RAILHEAD_TEST_SEED:-1}
while [ $# -gt 0 ]; do
    case $1 in
        --all) all=1 ;;
        --seed) seed=${2:?--seed needs a number}; shift ;;
        -b) build=${2:?-b needs a directory}; shift ;;
        -h | --help) usage; exit 0 ;;
        sweep | two | planted | peer | daemon | stress | guest | guest-mac | guest-two | guest-planted | guest-5_10 | guest-stress) parts+=("$1") ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(sweep two planted peer daemon stress guest guest-mac guest-two guest-planted guest-5_10 guest-stress)
if [ -z "$build" ]; then
    railhead_setup && railhead_build released || exit 2
    build=$RAILHEAD_BUILD
fi
# A sample: so much of the calls, and more until so many seconds are over per variant.
sample=(--percent 10 --seconds 2) guest_sample=(--percent 0.3 --seconds 2) pods=(--pods 200)
[ -z "$all" ] || sample=(--percent 100) guest_sample=(--percent 100) pods=(--pods 1000)
echo "seed $seed${all:+, all}"

as_root=() kernel=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
on_host() { "${as_root[@]}" "$here/host.sh" -b "$build/bin" "$@" --seed "$seed"; }
in_guest() { "$here/../../support/vm/run-guest.sh" "${kernel[@]}" -t "${RAILHEAD_CRASH_LIMIT:-36000}" -m 1536 -b "$build" "$here/guest.sh" "$@" --seed "$seed"; }

# finds COMMAND...: it has to fail with a state that is another one than before.
finds() {
    local said
    if said=$("$@"); then
        echo "the planted fault was not found:"
        echo "$said"
        return 1
    fi
    if ! grep -q 'the state is another one than before' <<<"$said"; then
        echo "something else than the planted fault was found:"
        echo "$said"
        return 1
    fi
    echo "the planted fault was found:"
    grep -m 1 -A 1 ' at call ' <<<"$said"
    grep -m 3 '^[-+] ' <<<"$said"
}

run_part() {
    case $1 in
        sweep) on_host sweep "${sample[@]}" ;;
        two) on_host two "${sample[@]}" ;;
        planted) finds on_host sweep --variant add-del --percent 100 --plant rules ;;
        peer) on_host peer "${sample[@]}" ;;
        daemon) on_host daemon "${sample[@]}" ;;
        stress) on_host stress "${pods[@]}" && on_host stress "${pods[@]}" --kills 0 ;;
        guest) in_guest sweep "${guest_sample[@]}" ;;
        guest-mac) in_guest mac "${guest_sample[@]}" ;;
        guest-two) in_guest two "${guest_sample[@]}" ;;
        guest-planted) finds in_guest sweep --variant add-del --percent 100 --plant vf ;;
        guest-5_10) kernel=(-k bullseye) && in_guest sweep "${guest_sample[@]}" ;;
        guest-stress) in_guest stress "${pods[@]}" ;;
    esac
}

worst=0
for part in "${parts[@]}"; do
    echo "== $part"
    run_part "$part"
    status=$?
    [ $status -le $worst ] || worst=$status
done
exit $worst
