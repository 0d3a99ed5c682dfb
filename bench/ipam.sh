#!/bin/bash
# ipam.sh - the part of the benchmarks about the IPAM plugins alone: railhead-ipam beside Debian's
# host-local, as processes.  bench/run.sh calls it.
#
# usage: ipam.sh -b BIN [-q] [-o FILE] [-r]
#   -b BIN      directory of the project's programs
#   -q          few runs: to see that it works
#   -o FILE     append the measurements to FILE
#   -r          report them at the end
# exit status: 0 measured; not 0 when something could not be.
#
# Both keep their state on the disk of TMPDIR.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^$/p;/^set /q' "$here/ipam.sh" | sed '/^set /d; s/^# \?//' >&2; exit 2; }

bin='' out='' report='' options=()
while getopts b:qo:r flag; do
    case $flag in
        b) bin=$(cd "$OPTARG" && pwd) ;;
        q) options=(--rounds 3 --taken 20 --crowd 1000 --burst-rounds 1 --pods 20) ;;
        o) out=$(realpath -m "$OPTARG") ;;
        r) report=1 ;;
        *) usage ;;
    esac
done
[ -n "$bin" ] || usage
work=$(mktemp -d "${TMPDIR:-/tmp}/railhead-ipam-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/disk"
"$here/ipam.py" --programs "$bin" --peers /usr/lib/cni --disk "$work/disk" --out "${out:-$work/lines}" \
    "${options[@]}"
[ -z "$report" ] || "$here/report.py" --no-host --no-guest --no-node "${out:-$work/lines}"
