#include "netns/sys/ethtool_stats.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "netns/base/text.h"

namespace railhead {
namespace {

// The kernel writes as many statistics as the driver has at that moment, whatever room the caller has. So the
// statistics that appear between two calls have to fit, too (a channel of mlx5 adds some thirty). Unwritten
// pages cost nothing.
constexpr std::size_t kSlack = 16384;
constexpr std::uint32_t kMostStatistics = 1U << 20;

// false: the driver has no statistics, or the device is not here.
Result<bool> Ask(int fd, const std::string& netdev, void* command, const char* what) {
  ifreq request{};
  if (netdev.empty() || netdev.size() >= sizeof(request.ifr_name)) return false;
  std::memcpy(request.ifr_name, netdev.data(), netdev.size());
  request.ifr_data = static_cast<char*>(command);
  int done = 0;
  do {
    done = ::ioctl(fd, SIOCETHTOOL, &request);
  } while (done != 0 && errno == EINTR);
  if (done == 0) return true;
  if (errno == ENODEV || errno == EOPNOTSUPP) return false;
  return FailSys(errno, std::string(what) + " of " + netdev);
}

}  // namespace

Result<EthtoolStats> EthtoolStats::Open() {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return FailSys(errno, "opening a socket for ethtool statistics");
  return EthtoolStats(std::move(fd));
}

Result<std::uint32_t> EthtoolStats::CountOf(const std::string& netdev) const {
  // The structure and the one number behind it.
  alignas(ethtool_sset_info) std::array<std::uint8_t, sizeof(ethtool_sset_info) + sizeof(std::uint32_t)>
      bytes{};
  ethtool_sset_info sets{};
  sets.cmd = ETHTOOL_GSSET_INFO;
  sets.sset_mask = std::uint64_t{1} << ETH_SS_STATS;
  std::memcpy(bytes.data(), &sets, sizeof(sets));
  const bool there = RH_TRY(Ask(fd_.get(), netdev, bytes.data(), "counting the driver's statistics"));
  std::memcpy(&sets, bytes.data(), sizeof(sets));
  if (!there || sets.sset_mask == 0) return std::uint32_t{0};
  std::uint32_t count = 0;
  std::memcpy(&count, bytes.data() + sizeof(sets), sizeof(count));
  if (count <= kMostStatistics) return count;
  return Fail(ErrorCode::kIo,
              "counting the driver's statistics of " + netdev + ": it says " + std::to_string(count));
}

Result<EthtoolStats::Layout> EthtoolStats::ReadLayout(const std::string& netdev,
                                                      const std::vector<std::string>& names,
                                                      std::uint32_t count) const {
  Layout layout;
  layout.names = names;
  const std::size_t size = sizeof(ethtool_gstrings) + (std::size_t{count} + kSlack) * ETH_GSTRING_LEN;
  const std::unique_ptr<std::uint8_t[]> buffer(new std::uint8_t[size]);
  ethtool_gstrings head{};
  head.cmd = ETHTOOL_GSTRINGS;
  head.string_set = ETH_SS_STATS;
  head.len = count;
  std::memcpy(buffer.get(), &head, sizeof(head));
  const bool there = RH_TRY(Ask(fd_.get(), netdev, buffer.get(), "reading the names of the statistics"));
  if (!there) return layout;
  std::memcpy(&head, buffer.get(), sizeof(head));
  layout.count = head.len;
  for (std::size_t place = 0; place < std::min(head.len, count); ++place) {
    const char* text = reinterpret_cast<const char*>(buffer.get()) + sizeof(head) + place * ETH_GSTRING_LEN;
    const std::string name(text, ::strnlen(text, ETH_GSTRING_LEN));
    if (Contains(names, name)) layout.places.emplace(name, place);
  }
  return layout;
}

Result<std::map<std::string, std::uint64_t>> EthtoolStats::Read(const std::string& netdev,
                                                                const std::vector<std::string>& names) {
  std::map<std::string, std::uint64_t> values;
  const std::uint32_t count = RH_TRY(CountOf(netdev));
  if (count == 0) {
    layouts_.erase(netdev);
    return values;
  }
  Layout& layout = layouts_[netdev];
  if (layout.count != count || layout.names != names) layout = RH_TRY(ReadLayout(netdev, names, count));
  if (layout.places.empty()) return values;
  const std::size_t size = sizeof(ethtool_stats) + (std::size_t{count} + kSlack) * sizeof(std::uint64_t);
  const std::unique_ptr<std::uint8_t[]> buffer(new std::uint8_t[size]);
  ethtool_stats head{};
  head.cmd = ETHTOOL_GSTATS;
  head.n_stats = count;
  std::memcpy(buffer.get(), &head, sizeof(head));
  const bool there = RH_TRY(Ask(fd_.get(), netdev, buffer.get(), "reading the driver's statistics"));
  std::memcpy(&head, buffer.get(), sizeof(head));
  // The list changed in between: the next reading will have it.
  if (!there || head.n_stats != layout.count) return values;
  for (const auto& [name, place] : layout.places) {
    std::uint64_t value = 0;
    std::memcpy(&value, buffer.get() + sizeof(head) + place * sizeof(value), sizeof(value));
    values.emplace(name, value);
  }
  return values;
}

}  // namespace railhead
