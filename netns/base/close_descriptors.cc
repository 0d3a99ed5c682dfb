#include "netns/base/close_descriptors.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

// false: before Linux 5.9, or a filter of system calls does not know it.
bool CloseRange(unsigned first, unsigned last) {
#ifdef SYS_close_range
  return first > last || ::syscall(SYS_close_range, first, last, 0U) == 0;
#else
  return false;
#endif
}

bool CloseBetween(int first, const std::vector<int>& kept) {
  auto from = static_cast<unsigned>(first);
  for (const int fd : kept) {
    if (!CloseRange(from, static_cast<unsigned>(fd) - 1)) return false;
    from = static_cast<unsigned>(fd) + 1;
  }
  return CloseRange(from, ~0U);
}

// By name: under containerd the limit of descriptors can be a thousand millions.
void CloseListed(int first, const std::vector<int>& kept) {
  const auto names = ListDirectory("/proc/self/fd");
  if (!names) return;
  for (const auto& name : names->value_or(std::vector<std::string>{})) {
    const auto fd = ParseInt(name);
    if (!fd || *fd < first || std::binary_search(kept.begin(), kept.end(), static_cast<int>(*fd))) continue;
    ::close(static_cast<int>(*fd));
  }
}

}  // namespace

void CloseDescriptors(int first, std::vector<int> kept) {
  std::erase_if(kept, [first](int fd) { return fd < first; });
  std::ranges::sort(kept);
  if (!CloseBetween(first, kept)) CloseListed(first, kept);
}

}  // namespace railhead
