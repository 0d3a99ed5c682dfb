#!/bin/bash
# Runs in the guest: tests/vm/run-guest.sh -b BUILD_TREE tests/health/guest.sh [gtest options]
exec "$BUILD/bin/health_guest_test" "$@"
