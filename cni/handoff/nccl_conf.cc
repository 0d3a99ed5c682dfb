#include "cni/handoff/nccl_conf.h"

#include <sys/socket.h>

#include <algorithm>

#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::size_t kMaxValue = 1022;

class Lines {
 public:
  explicit Lines(const std::vector<NcclLine>& env) : env_(env) {}

  // What the fabric has a line of its own for is left to that.
  void Add(std::string name, std::string value) {
    const auto same = [&](const NcclLine& line) { return line.first == name; };
    if (std::none_of(env_.begin(), env_.end(), same)) lines_.emplace_back(std::move(name), std::move(value));
  }
  // Of what all NICs have the same value.
  void AddShared(std::string name, const std::vector<HandoffNic>& nics,
                 std::optional<int> HandoffNic::*value) {
    const auto first = nics.front().*value;
    const bool same =
        std::all_of(nics.begin(), nics.end(), [&](const HandoffNic& nic) { return nic.*value == first; });
    if (same && first) Add(std::move(name), std::to_string(*first));
  }
  [[nodiscard]] std::vector<NcclLine> All() const {
    std::vector<NcclLine> all = lines_;
    all.insert(all.end(), env_.begin(), env_.end());
    return all;
  }

 private:
  const std::vector<NcclLine>& env_;
  std::vector<NcclLine> lines_;
};

void AddGids(const GidSelection& gids, Lines& lines) {
  if (const int* index = std::get_if<int>(&gids)) {
    lines.Add("NCCL_IB_GID_INDEX", std::to_string(*index));
    return;
  }
  const IpPrefix& range = std::get<GidSearch>(gids).range;
  // Said though it is the default: the image's own file may have an index.
  lines.Add("NCCL_IB_GID_INDEX", kNcclSearches);
  lines.Add("NCCL_IB_ADDR_FAMILY", range.address.Family() == AF_INET ? "AF_INET" : "AF_INET6");
  lines.Add("NCCL_IB_ADDR_RANGE", range.ToString());
  lines.Add("NCCL_IB_ROCE_VERSION_NUM", "2");
}

void AddNics(const Handoff& handoff, Lines& lines) {
  std::vector<std::string> names;
  names.reserve(handoff.nics.size());
  for (const auto& nic : handoff.nics) names.push_back(nic.rdma_device);
  lines.Add("NCCL_IB_HCA", "=" + Join(names, ","));
  AddGids(handoff.gids, lines);
  lines.AddShared("NCCL_IB_TC", handoff.nics, &HandoffNic::traffic_class);
  lines.AddShared("NCCL_IB_SL", handoff.nics, &HandoffNic::service_level);
  for (const auto& [name, value] : handoff.paths) lines.Add(name, value);
}

}  // namespace

Result<std::string> NcclConf(const Handoff& handoff) {
  Lines lines(handoff.env);
  if (!handoff.nics.empty()) AddNics(handoff, lines);
  if (!handoff.socket_ifname.empty()) lines.Add("NCCL_SOCKET_IFNAME", "=" + handoff.socket_ifname);
  std::string text;
  for (const auto& [name, value] : lines.All()) {
    if (value.size() > kMaxValue) {
      return Fail(ErrorCode::kInvalid,
                  name + " is longer than NCCL reads (" + std::to_string(kMaxValue) + " bytes)");
    }
    text.append(name).append("=").append(value).append("\n");
  }
  return text;
}

std::optional<std::string> ValueIn(const std::string& conf, const std::string& variable) {
  for (const auto& line : Split(conf, '\n')) {
    if (!line.starts_with(variable + "=")) continue;
    const std::string value = line.substr(variable.size() + 1);
    return value.starts_with("=") ? value.substr(1) : value;
  }
  return std::nullopt;
}

}  // namespace railhead
