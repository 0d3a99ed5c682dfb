#!/bin/bash
# run.sh - build the fuzzers and let each run for a while, from the kept corpus.
#
# usage: tests/fuzz/run.sh [--seconds N | --runs N] [--seed N] [--built TREE | --keep] [NAME...]
#                          (default: 3 s, all)
#   --runs N   so many executions of each, however long they take: with --seed the same
#              ones each time, so that a change is judged by itself
#   --seed N   of all choices; default: RAILHEAD_TEST_SEED, or 1. A search takes another each time: --seed $RANDOM
#   --built TREE   take the fuzzers of this build tree, which know of their own coverage only:
#              they try the corpus and mutations of all of it, but do not search
#   --keep     add what reaches new code to tests/fuzz/corpus/NAME
# Prints the executions of each. What crashed a fuzzer is kept in build/fuzz/found/ and
# runs again with: build/fuzz/bin/fuzz_NAME FILE (or TREE/bin/fuzz_NAME FILE)
# exit status: 0; 1 a fuzzer found something, or the build failed.
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$repo/build/fuzz
usage() { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//' >&2; exit 1; }

seconds=3 runs='' seed=${RAILHEAD_TEST_SEED:-1} keep='' built=''
while [ $# -gt 0 ]; do
    case $1 in
        --seconds) seconds=${2:?} && shift 2 ;;
        --runs) runs=${2:?} && shift 2 ;;
        --seed) seed=${2:?} && shift 2 ;;
        --built) built=${2:?} && shift 2 ;;
        --keep) keep=1 && shift ;;
        -*) usage ;;
        *) break ;;
    esac
done
[[ $seconds =~ ^[0-9]+$ && $seed =~ ^[0-9]+$ && $runs =~ ^[0-9]*$ && ! ($keep && $built) ]] || usage
if [ $# = 0 ]; then
    for corpus in "$repo"/tests/fuzz/corpus/*/; do set -- "$@" "$(basename "$corpus")"; done
fi
for name in "$@"; do
    [ -f "$repo/tests/fuzz/$name.cc" ] || { echo "run.sh: there is no fuzzer '$name'" >&2; exit 1; }
done

# ---- build ---------------------------------------------------------------------------
cd "$repo"
build_fuzzers() { # NAME...
    local launcher=() log=$build/build.log
    mkdir -p "$build"
    ! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    { [ -f "$build/build.ninja" ] || cmake --preset fuzz "${launcher[@]}"; } >"$log" 2>&1 &&
        cmake --build "$build" --target "${@/#/fuzz_}" >>"$log" 2>&1 || {
        grep -A12 -E 'FAILED|error:|Error' "$log" | head -60 >&2
        echo "run.sh: the build failed; all of its output is in $log" >&2
        exit 1
    }
}
if [ -n "$built" ]; then build=$built; else build_fuzzers "$@"; fi

# ---- run -------------------------------------------------------------------------------
mkdir -p "$build/found"
limit=(-max_total_time="$seconds")
[ -z "$runs" ] || limit=(-runs="$runs")
[ -z "$built" ] || limit+=(-keep_seed=1)
echo "seed $seed, ${runs:-$seconds s}${runs:+ executions} each"
work=$(mktemp -d /dev/shm/railhead-fuzz.XXXXXX)
export TMPDIR=$work
trap 'rm -rf "$work"' EXIT
run() { # NAME: runs one fuzzer, prints its line; 1 when it found something
    local name=$1 corpus=$repo/tests/fuzz/corpus/$1 status=0 new=$work/$1 dictionary=()
    mkdir -p "$new"
    [ ! -f "$repo/tests/fuzz/$name.dict" ] || dictionary=("-dict=$repo/tests/fuzz/$name.dict")
    "$build/bin/fuzz_$name" "${dictionary[@]}" -seed="$seed" "${limit[@]}" -timeout=10 -max_len=4096 \
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$build/found/$name-" "$new" "$corpus" \
        >"$work/$name.log" 2>&1 || status=$?
    printf '%-12s %10s executions, %s inputs kept, %s new\n' "$name" \
        "$(awk '/stat::number_of_executed_units/ { print $2 }' "$work/$name.log")" \
        "$(find "$corpus" -type f | wc -l)" "$(find "$new" -type f | wc -l)"
    [ -z "$keep" ] || "$build/bin/fuzz_$name" -merge=1 "$corpus" "$new" >/dev/null 2>&1 || true
    [ $status != 0 ] || return 0
    grep -E 'ERROR|runtime error|does not hold|Test unit written|#[0-9]+ 0x.* in railhead' "$work/$name.log" | head -20
    echo "$name found something (exit status $status)"
    return 1
}
failed=0
for name in "$@"; do run "$name" || failed=1; done
exit $failed
