#include "cni/nccl/nccl_conf.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::size_t kMaxValue = 1022;
// NCCL_IB_GID_INDEX where NCCL is to search.
constexpr const char* kSearches = "-1";

class Lines {
 public:
  explicit Lines(const std::vector<HandoffLine>& env) : env_(env) {}

  // What the fabric has a line of its own for is left to that.
  void Add(std::string name, std::string value) {
    const auto same = [&](const HandoffLine& line) { return line.first == name; };
    if (std::none_of(env_.begin(), env_.end(), same)) lines_.emplace_back(std::move(name), std::move(value));
  }
  void Add(std::string name, std::optional<int> value) {
    if (value) Add(std::move(name), std::to_string(*value));
  }
  [[nodiscard]] std::vector<HandoffLine> All() const {
    std::vector<HandoffLine> all = lines_;
    all.insert(all.end(), env_.begin(), env_.end());
    return all;
  }

 private:
  const std::vector<HandoffLine>& env_;
  std::vector<HandoffLine> lines_;
};

void AddGids(const GidSelection& gids, Lines& lines) {
  if (const int* index = std::get_if<int>(&gids)) {
    lines.Add("NCCL_IB_GID_INDEX", std::to_string(*index));
    return;
  }
  const auto& search = std::get<GidSearch>(gids);
  // Said though it is the default: the image's own file may have an index.
  lines.Add("NCCL_IB_GID_INDEX", kSearches);
  lines.Add("NCCL_IB_ADDR_FAMILY", FamilyName(search));
  lines.Add("NCCL_IB_ADDR_RANGE", search.range.ToString());
  lines.Add("NCCL_IB_ROCE_VERSION_NUM", "2");
}

void AddNics(const Handoff& handoff, Lines& lines) {
  std::vector<std::string> names;
  names.reserve(handoff.nics.size());
  for (const auto& nic : handoff.nics) names.push_back(nic.rdma_device);
  lines.Add("NCCL_IB_HCA", "=" + Join(names, ","));
  AddGids(handoff.gids, lines);
  lines.Add("NCCL_IB_TC", SharedValue(handoff.nics, &HandoffNic::traffic_class));
  lines.Add("NCCL_IB_SL", SharedValue(handoff.nics, &HandoffNic::service_level));
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

std::optional<GidSelection> GidsIn(const std::string& conf) {
  const auto index = ValueIn(conf, "NCCL_IB_GID_INDEX");
  if (!index) return std::nullopt;
  if (*index != kSearches) {
    const auto number = ParseInt(*index);
    return number ? std::optional<GidSelection>(static_cast<int>(*number)) : std::nullopt;
  }
  const auto range = IpPrefix::Parse(ValueIn(conf, "NCCL_IB_ADDR_RANGE").value_or(""));
  return range ? std::optional<GidSelection>(GidSearch{*range}) : std::nullopt;
}

}  // namespace railhead
