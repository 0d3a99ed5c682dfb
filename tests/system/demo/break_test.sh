#!/bin/bash
# break_test.sh FAULT - the demo has to find a planted fault, by exactly the checks that
# are about it: its exit status 1. A long test: tests/run.sh runs it with --all.
status=0
"$(dirname "${BASH_SOURCE[0]}")/../../demo.sh" --break "$1" || status=$?
[ $status = 1 ] || { echo "the demo's exit status was $status, not 1"; exit 1; }
