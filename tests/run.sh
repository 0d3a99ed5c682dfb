#!/bin/bash
# run.sh - set the machine up, build, and run every test; ends with ctest's summary.
#
# usage: tests/run.sh [--all] [ctest options, e.g. -R plugin -j1]
#   --all   also the long forms of proofs
# Unit and namespace tests run with AddressSanitizer and UndefinedBehaviorSanitizer
# (preset "debug"), fast tests first; guests run the static release binaries beside them
# and after them. The first failure ends the run.
# exit status: ctest's; 1 when setting up or building failed.
set -euo pipefail
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$repo/tests/setup.sh"

case ${1:-} in
    --help | -h) sed -n '2,/^set /p' "$0" | sed '$d; s/^# \?//'; exit 0 ;;
    --all) export RAILHEAD_TESTS_ALL=1; shift ;;
    *) set -- -LE long "$@" ;;
esac

started=$SECONDS
step() { printf '%4d s  %s\n' "$((SECONDS - started))" "$*"; }

step "setting up the machine"
railhead_setup
step "building the release binaries"
railhead_build released
step "building the tests with sanitizers"
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cd "$repo"
mkdir -p build
# Fresh: a tree of another compiler would forget its preset and so its sanitizers. Joined
# sources (CMakeLists.txt) compile in two fifths of the time; lint.tidy has some by themselves.
cmake --fresh --preset debug -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=10 "${launcher[@]}" >build/debug-configure.log || { cat build/debug-configure.log >&2; exit 1; }
cmake --build --preset debug >build/debug-build.log || { grep -A12 -E 'FAILED|error:' build/debug-build.log >&2; exit 1; }
step "running the tests"
# ctest starts the longest tests first once it knows them; without that memory it keeps
# the order of tests/CMakeLists.txt. Three at once: on two cores, one of them mostly waits for a guest.
rm -f build/debug/Testing/Temporary/CTestCostData.txt
ctest --test-dir build/debug -j3 --output-on-failure --stop-on-failure --no-tests=error "$@" | tests/skipped.py build/debug ${RAILHEAD_TESTS_ALL:+--all}
