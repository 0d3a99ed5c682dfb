#!/bin/bash
# run.sh - a node with 14 VFs and up to 14 pods for a while, with everything at random that goes
# wrong on nodes: soak.h says what is checked, plan.h what is drawn.
#
# usage: tests/system/soak/run.sh [-b BUILD] [--stand-ins] [--seconds N] [--rounds N] [--seed N] [--verbose] [--planted]
#   -b BUILD     take the programs of this build tree; default: build "release" first
#   --stand-ins  on this machine, with stand-ins of VFs in namespaces of its own: less can go wrong with
#                them, but PFs go down and up during calls. Needs root
#   --seconds N  how long at least (default 60), and until each act was drawn often enough
#   --rounds N   how many rounds at most
#   --seed N     of all choices; default: RAILHEAD_TEST_SEED, or 1
#   --verbose    print what is drawn
#   --planted    every DEL leaves alternative names behind (on this machine) or a VF's settings (in the guest):
#                that has to be found
# exit status: 0 nothing was wrong; 1 something was, or did not end, and is shown; 2 could not be run.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup.sh
. "$here/../../setup.sh"
usage() { sed -n '2,/^set /p' "$here/run.sh" | sed '$d; s/^# \?//'; }

build='' stand_ins='' planted='' options=() seed=${RAILHEAD_TEST_SEED:-1}
while [ $# -gt 0 ]; do
    case $1 in
        -b) build=${2:?-b needs a directory}; shift ;;
        --stand-ins) stand_ins=1 ;;
        --seed) seed=${2:?--seed needs a number}; shift ;;
        --seconds | --rounds) options+=("$1" "${2:?$1 needs a number}"); shift ;;
        --planted) planted=1 ;;
        --verbose) options+=(--verbose) ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
if [ -z "$build" ]; then
    railhead_setup && railhead_build released || exit 2
    build=$RAILHEAD_BUILD
fi
options+=(--seed "$seed")
if [ -n "$stand_ins" ]; then
    [ -z "$planted" ] || options+=(--plant altnames)
    soak=("$here/../crash/host.sh" -b "$build/bin" soak "${options[@]}")
    [ "$(id -u)" = 0 ] || soak=(sudo "${soak[@]}")
else
    [ -z "$planted" ] || options+=(--plant vf)
    soak=("$here/../../support/vm/run-guest.sh" -t "${RAILHEAD_SOAK_LIMIT:-3500}" -T leaf -m 1536 -b "$build")
    [ -z "${RAILHEAD_SOAK_OUT:-}" ] || soak+=(-o "$RAILHEAD_SOAK_OUT")
    soak+=("$here/guest.sh" "${options[@]}")
fi
[ -n "$planted" ] || exec "${soak[@]}"
said=$("${soak[@]}")
status=$?
if [ "$status" = 1 ] && grep -q '^WRONG: the state is another one than before' <<<"$said"; then
    echo "the planted fault was found:"
    grep -m 3 '^[-+] ' <<<"$said"
    exit 0
fi
echo "the planted fault was not found:"
echo "$said"
exit 1
