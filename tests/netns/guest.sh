#!/bin/bash
# Runs in the guest: tests/vm/run-guest.sh -b BUILD_TREE tests/netns/guest.sh [gtest options]
exec "$BUILD/bin/netns_guest_test" "$@"
