// with-capabilities NAME[,NAME...] PROGRAM [ARG...]: runs a program as root with only these capabilities, as
// a service manager or a container runtime would.
// Exit status: the program's; 125 when it was not run.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "netns/base/text.h"

namespace {

// The capabilities that Railhead needs, and some that it must not need.
constexpr std::array<std::pair<const char*, int>, 8> kNames = {{
    {"NET_ADMIN", CAP_NET_ADMIN},
    {"NET_RAW", CAP_NET_RAW},
    {"SYS_ADMIN", CAP_SYS_ADMIN},
    {"SYS_PTRACE", CAP_SYS_PTRACE},
    {"SYS_RAWIO", CAP_SYS_RAWIO},
    {"DAC_OVERRIDE", CAP_DAC_OVERRIDE},
    {"DAC_READ_SEARCH", CAP_DAC_READ_SEARCH},
    {"SYS_RESOURCE", CAP_SYS_RESOURCE},
}};

int Number(const std::string& name) {
  for (const auto& [known, number] : kNames) {
    if (name == known || name == std::string("CAP_") + known) return number;
  }
  return -1;
}

int Fail(const char* what) {
  std::perror(what);
  return 125;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    (void)std::fprintf(stderr, "usage: with-capabilities NAME[,NAME...] PROGRAM [ARG...]\n");
    return 125;
  }
  std::set<int> kept;
  for (const std::string& name : railhead::Split(argv[1], ',')) {
    if (name.empty()) continue;
    if (Number(name) < 0) {
      (void)std::fprintf(stderr, "with-capabilities: no capability that is known here: %s\n", name.c_str());
      return 125;
    }
    kept.insert(Number(name));
  }
  // On execve(), root gains only the capabilities of the bounding set: execve(2), capabilities(7).
  for (int number = 0; ::prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; ++number) {
    if (!kept.contains(number) && ::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0)
      return Fail("PR_CAPBSET_DROP");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Fail("PR_SET_NO_NEW_PRIVS");
  ::execvp(argv[2], argv + 2);
  return Fail(argv[2]);
}
