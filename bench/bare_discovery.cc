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
  // The first name in a directory; "" when it is empty or missing.
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

void ReadVfLinks(int at, Reader* reader) {
  std::array<char, 32> link{};
  for (int n = 0;; ++n) {
    (void)std::snprintf(link.data(), link.size(), "virtfn%d", n);
    if (!reader->Link(at, link.data())) return;
  }
}

void ReadFunction(int at, Reader* reader, BareDiscovery* done) {
  if (!reader->Attribute(at, "class") || !reader->StartsWith("0x02")) return;
  ++done->functions;
  for (const char* name : {"vendor", "device", "numa_node", "acpi_index"}) (void)reader->Attribute(at, name);
  (void)reader->Link(at, "driver");
  if (!reader->Link(at, "physfn")) {
    for (const char* name : {"sriov_totalvfs", "sriov_numvfs"}) (void)reader->Attribute(at, name);
    ReadVfLinks(at, reader);
  }
  const auto netdev = reader->FirstIn(at, "net");
  std::array<char, 300> type{};
  (void)std::snprintf(type.data(), type.size(), "net/%s/type", netdev.data());
  if (netdev[0] != 0) (void)reader->Attribute(at, type.data());
  (void)reader->FirstIn(at, "infiniband");
}

// Only the attributes that the doctor reads. Most functions are VFs, which one link shows.
void ReadForDoctor(int at, Reader* reader, BareDiscovery* done) {
  if (reader->Link(at, "physfn") || !reader->Attribute(at, "class") || !reader->StartsWith("0x02")) return;
  ++done->functions;
  ReadVfLinks(at, reader);
  (void)reader->FirstIn(at, "infiniband");
}

// Calls `read` with each entry of the directory and the directory it is in.
template <typename Read>
Result<void> ForEach(const std::string& path, const Read& read) {
  const Directory directory = OpenDirectory(AT_FDCWD, path.c_str());
  if (!directory) return FailSys(errno, "listing " + path);
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') read(::dirfd(directory.get()), &entry->d_name[0]);
  }
  return {};
}

// The same with the directories in it, open.
template <typename Read>
Result<void> ForEachDirectory(const std::string& path, const Read& read) {
  return ForEach(path, [&](int at, const char* name) {
    const UniqueFd entry(::openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (entry.valid()) read(entry.get());
  });
}

}  // namespace

Result<BareDiscovery> ReadBare(const Root& root) {
  BareDiscovery done;
  Reader reader(&done);
  RH_TRY(ForEachDirectory(root.Path("/sys/bus/pci/devices"),
                          [&](int function) { ReadFunction(function, &reader, &done); }));
  return done;
}

Result<BareDiscovery> ReadBareForDoctor(const Root& root) {
  BareDiscovery done;
  Reader reader(&done);
  RH_TRY(ForEachDirectory(root.Path("/sys/bus/pci/devices"),
                          [&](int function) { ReadForDoctor(function, &reader, &done); }));
  RH_TRY(ForEach(root.Path("/sys/class/infiniband"),
                 [&](int at, const char* name) { (void)reader.Link(at, name); }));
  RH_TRY(ForEachDirectory(root.Path("/proc"), [&](int process) {
    if (reader.Link(process, "ns/net")) (void)reader.Attribute(process, "comm");
  }));
  return done;
}

}  // namespace railhead::bench
