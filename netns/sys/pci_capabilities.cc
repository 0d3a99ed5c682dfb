#include "netns/sys/pci_capabilities.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

constexpr int kConventionalSize = 0x100;  // extended capabilities begin behind it
constexpr int kExtendedSize = 0x1000;
constexpr int kSmallestCapability = 8;

// Configuration space is little-endian.
Result<std::uint32_t> ReadWord(int fd, const std::string& path, int offset) {
  std::array<std::uint8_t, 4> bytes{};
  const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), offset);
  if (got < 0) return FailSys(errno, "reading " + path);
  if (static_cast<std::size_t>(got) < bytes.size()) {
    return Fail(ErrorCode::kPermission, path + " ends before byte " + std::to_string(offset),
                "only root (CAP_SYS_ADMIN) reads beyond byte 64");
  }
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8U |
         static_cast<std::uint32_t>(bytes[2]) << 16U | static_cast<std::uint32_t>(bytes[3]) << 24U;
}

// nullopt: the function does not have it.
Result<std::optional<int>> FindCapability(int fd, const std::string& path, std::uint16_t id) {
  int at = kConventionalSize;
  // As many as fit: whatever the pointers say, it ends.
  for (int left = (kExtendedSize - kConventionalSize) / kSmallestCapability; left > 0; --left) {
    const std::uint32_t header = RH_TRY(ReadWord(fd, path, at));
    // Nothing there, and what a function without power answers.
    if (header == 0 || header == UINT32_MAX) return std::nullopt;
    if ((header & 0xffffU) == id) return at;
    at = static_cast<int>(header >> 20U) & ~3;
    if (at < kConventionalSize) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<std::uint16_t>> ReadExtendedCapability(const Root& root, const PciAddress& address,
                                                            std::uint16_t id, int offset) {
  const std::string path = root.Path("/sys/bus/pci/devices/") + address.ToString() + "/config";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "opening " + path);
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) return FailSys(errno, "looking at " + path);
  // The size is what the function has, not what the reader may see.
  if (facts.st_size <= kConventionalSize) return std::nullopt;
  const auto at = RH_TRY(FindCapability(fd.get(), path, id));
  if (!at) return std::nullopt;
  const std::uint32_t word = RH_TRY(ReadWord(fd.get(), path, (*at + offset) & ~3));
  return static_cast<std::uint16_t>((offset & 2) != 0 ? word >> 16U : word & 0xffffU);
}

}  // namespace railhead
