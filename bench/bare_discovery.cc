#include "bench/bare_discovery.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "netns/base/unique_fd.h"

namespace railhead::bench {
namespace {

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;
using Buffer = std::array<char, 4096>;

Directory OpenDirectory(int at, const char* name) {
  const int fd = ::openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return {fd < 0 ? nullptr : ::fdopendir(fd), ::closedir};
}

class Reader {
 public:
  explicit Reader(BareDiscovery* done) : done_(done) {}

  bool Attribute(int at, const char* name) {
    const UniqueFd fd(::openat(at, name, O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return false;
    ++done_->files;
    size_ = ::read(fd.get(), buffer_.data(), buffer_.size());
    return size_ > 0;
  }
  bool Link(int at, const char* name) {
    if (::readlinkat(at, name, buffer_.data(), buffer_.size()) <= 0) return false;
    ++done_->files;
    return true;
  }
  [[nodiscard]] bool StartsWith(const char* text) const {
    return size_ > 0 && std::strncmp(buffer_.data(), text, std::strlen(text)) == 0;
  }
  // The first name in a directory, "" when there is none.
  std::array<char, 256> FirstIn(int at, const char* name) {
    std::array<char, 256> first{};
    const Directory directory = OpenDirectory(at, name);
    if (!directory) return first;
    ++done_->files;
    while (const dirent* entry = ::readdir(directory.get())) {
      if (entry->d_name[0] == '.') continue;
      (void)std::snprintf(first.data(), first.size(), "%s", &entry->d_name[0]);
      break;
    }
    return first;
  }

 private:
  BareDiscovery* done_;
  Buffer buffer_{};
  ssize_t size_ = 0;
};

void ReadFunction(int at, Reader* reader, BareDiscovery* done) {
  if (!reader->Attribute(at, "class") || !reader->StartsWith("0x02")) return;
  ++done->functions;
  for (const char* name : {"vendor", "device", "numa_node", "acpi_index"}) (void)reader->Attribute(at, name);
  (void)reader->Link(at, "driver");
  if (!reader->Link(at, "physfn")) {
    for (const char* name : {"sriov_totalvfs", "sriov_numvfs"}) (void)reader->Attribute(at, name);
    std::array<char, 32> link{};
    for (int n = 0;; ++n) {
      (void)std::snprintf(link.data(), link.size(), "virtfn%d", n);
      if (!reader->Link(at, link.data())) break;
    }
  }
  const auto netdev = reader->FirstIn(at, "net");
  std::array<char, 300> type{};
  (void)std::snprintf(type.data(), type.size(), "net/%s/type", netdev.data());
  if (netdev[0] != 0) (void)reader->Attribute(at, type.data());
  (void)reader->FirstIn(at, "infiniband");
}

}  // namespace

Result<BareDiscovery> ReadBare(const Root& root) {
  const std::string path = root.Path("/sys/bus/pci/devices");
  const Directory directory = OpenDirectory(AT_FDCWD, path.c_str());
  if (!directory) return FailSys(errno, "listing " + path);
  BareDiscovery done;
  Reader reader(&done);
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    const UniqueFd function(
        ::openat(::dirfd(directory.get()), &entry->d_name[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (function.valid()) ReadFunction(function.get(), &reader, &done);
  }
  return done;
}

}  // namespace railhead::bench
