// Runs the tests in a new network namespace, so that no test can touch the machine's interfaces. Without
// privileges it becomes root of a new user namespace.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "netns/base/files.h"

namespace {

bool EnterPrivateNamespaces() {
  if (unshare(CLONE_NEWNET) == 0) return true;
  const std::string uid = std::to_string(geteuid());
  const std::string gid = std::to_string(getegid());
  return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) == 0 &&
         railhead::WriteAttribute("/proc/self/setgroups", "deny") &&
         railhead::WriteAttribute("/proc/self/uid_map", "0 " + uid + " 1") &&
         railhead::WriteAttribute("/proc/self/gid_map", "0 " + gid + " 1");
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  // Listing tests, as CMake does while building, needs no namespaces.
  if (!GTEST_FLAG_GET(list_tests) && !EnterPrivateNamespaces()) {
    std::fprintf(stderr, "cannot make a private network namespace: %s\n", std::strerror(errno));
    return 1;
  }
  return RUN_ALL_TESTS();
}
