#!/bin/bash
# Runs in the guest: tests/support/vm/run-guest.sh -b BUILD_TREE tests/guest/netns.sh [gtest options]
# Not rdma_rxe: a test shows what happens without it, and that the kernel loads it.
modprobe ib_core || exit 1
exec "$BUILD/bin/netns_guest_test" "$@"
