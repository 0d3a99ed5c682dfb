#include <gtest/gtest.h>

#include <cstdio>

#include "netns/base/files.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // Only the guest has a job directory. On any other machine these tests would remove interfaces that the
  // machine needs.
  if (!railhead::Exists("/mnt/job/run") || !railhead::Exists("/sys/class/net/pf0")) {
    std::fprintf(stderr, "this is not the guest: run it by tests/support/vm/run-guest.sh\n");
    return 1;
  }
  return RUN_ALL_TESTS();
}
