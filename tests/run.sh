#!/bin/bash
# run.sh - set the machine up, run the demo, build, and run every test; ends with ctest's summary.
#
# usage: tests/run.sh [--all] [ctest options, e.g. -R plugin -j1]
#   --all   also the long forms of proofs, and random tests with another seed each time: it is printed, and
#           RAILHEAD_TEST_SEED=N repeats it. Without --all and the variable, the seed is 1.
# README's first command comes first: tests/demo.sh, in the tree as it is. With ctest options it is left out.
# As soon as it has built its programs, the other builds go on beside its guests.
# Unit and namespace tests run with AddressSanitizer and UndefinedBehaviorSanitizer
# (preset "debug"), fast tests first; guests run the static release binaries beside them
# and after them. The first failure ends the run.
# Before ctest's summary stands what was skipped, and where the time went.
# exit status: ctest's; 1 when setting up, the demo or a build failed, or when the run has left something behind.
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

case ${1:-} in --help | -h) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//'; exit 0 ;; esac
[ -n "${RAILHEAD_RUN:-}" ] || exec "$repo/tests/leftovers.sh" "$0" "$@"
. "$repo/tests/setup.sh"

demo=yes
case ${1:-} in
    --all) export RAILHEAD_TESTS_ALL=1 RAILHEAD_TEST_SEED=${RAILHEAD_TEST_SEED:-$SRANDOM}; shift ;;
esac
[ $# = 0 ] || demo=''
[ -n "${RAILHEAD_TESTS_ALL:-}" ] || set -- -LE long "$@"

cd "$repo"
mkdir -p build
rm -f build/{steps,demo.log}
# step WHAT: it begins; what began before it has taken until now.
current='' began=0
step() {
    [ -z "$current" ] || printf '%s\t%s\n' "$current" "$((SECONDS - began))" >>build/steps
    current=$1 began=$SECONDS
    [ -z "$1" ] || printf '%4d s  %s\n' "$SECONDS" "$1"
}
demo_ends() {
    wait "$demo" || { echo "tests/run.sh: tests/demo.sh failed; what it said is in build/demo.log" >&2; exit 1; }
    demo=''
}
stop() { [ -z "$demo" ] || kill "$demo" 2>/dev/null || true; }
trap stop EXIT

step "setting up the machine"
railhead_setup
if [ -n "$demo" ]; then
    step "building the demo's programs (tests/demo.sh)"
    tests/demo.sh > >(sed -u 's/^/        demo: /' | tee build/demo.log) 2>&1 &
    demo=$!
    # Its guests are all that is left then.
    until grep -qs ' boots\?:' build/demo.log || ! kill -0 "$demo" 2>/dev/null; do sleep 1; done
    kill -0 "$demo" 2>/dev/null || demo_ends
fi
# beside COMMAND...: what has no time limit gives way to the demo's guests, which have one.
beside() { (renice -n 10 "$BASHPID" >/dev/null; "$@"); }
step "building the tests with sanitizers"
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# Fresh: a tree of another compiler would forget its preset and so its sanitizers. Joined
# sources (CMakeLists.txt) compile in two fifths of the time.
cmake --fresh --preset debug -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=10 "${launcher[@]}" >build/debug-configure.log || { cat build/debug-configure.log >&2; exit 1; }
beside cmake --build --preset debug --target all ${RAILHEAD_TESTS_ALL:+sweeps} >build/debug-build.log || { grep -A12 -E 'FAILED|error:' build/debug-build.log >&2; exit 1; }
# In the demo's tree, so not first: it builds its images there.
step "building the other released programs"
beside railhead_build released
if [ -n "$demo" ]; then
    step "the demo's end"
    demo_ends
fi
step "running the tests"
echo "        random ones with RAILHEAD_TEST_SEED=${RAILHEAD_TEST_SEED:-1}"
# ctest starts the longest tests first once it knows them; without that memory it keeps
# the order of tests/CMakeLists.txt. Four at once, and a guest counts as two: on two cores, one mostly waits.
rm -f build/debug/Testing/Temporary/CTestCostData.txt
ctest --test-dir build/debug -j4 --output-on-failure --stop-on-failure --no-tests=error "$@" | tests/summary.py build/debug build/steps ${RAILHEAD_TESTS_ALL:+--all}
