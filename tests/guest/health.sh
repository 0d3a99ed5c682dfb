#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE tests/guest/health.sh [gtest options]
exec "$BUILD/bin/health_guest_test" "$@"
