#include "cni/nccl/nccl_conf.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include "cni/nccl/nic_config.h"
#include "netns/base/addresses.h"
#include "netns/base/text.h"

namespace railhead::nccl {
namespace {

constexpr std::size_t kMaxValue = 1022;
// The value of NCCL_IB_GID_INDEX with which NCCL searches.
constexpr const char* kSearches = "-1";

class Lines {
 public:
  explicit Lines(const std::vector<Variable>& env) : env_(env) {}

  // Skips a name for which the fabric has a line of its own.
  void Add(std::string name, std::string value) {
    const auto same = [&](const Variable& line) { return line.first == name; };
    if (std::ranges::none_of(env_, same)) lines_.emplace_back(std::move(name), std::move(value));
  }
  void Add(std::string name, std::optional<int> value) {
    if (value) Add(std::move(name), std::to_string(*value));
  }
  [[nodiscard]] std::vector<Variable> All() const {
    std::vector<Variable> all = lines_;
    all.insert(all.end(), env_.begin(), env_.end());
    return all;
  }

 private:
  const std::vector<Variable>& env_;
  std::vector<Variable> lines_;
};

void AddGids(const GidSelection& gids, Lines& lines) {
  if (const int* index = std::get_if<int>(&gids)) {
    lines.Add("NCCL_IB_GID_INDEX", std::to_string(*index));
    return;
  }
  const auto& search = std::get<GidSearch>(gids);
  // Written although it is the default: the image's own file may have an index.
  lines.Add("NCCL_IB_GID_INDEX", kSearches);
  lines.Add("NCCL_IB_ADDR_FAMILY", FamilyName(search));
  lines.Add("NCCL_IB_ADDR_RANGE", search.range.ToString());
  lines.Add("NCCL_IB_ROCE_VERSION_NUM", "2");
}

void AddNics(const NcclConfig& config, Lines& lines) {
  std::vector<std::string> names;
  names.reserve(config.nics.size());
  for (const auto& nic : config.nics) names.push_back(nic.rdma_device);
  lines.Add("NCCL_IB_HCA", "=" + Join(names, ","));
  AddGids(config.gids, lines);
  lines.Add("NCCL_IB_TC", SharedValue(config.nics, &NicConfig::traffic_class));
  lines.Add("NCCL_IB_SL", SharedValue(config.nics, &NicConfig::service_level));
  for (const auto& [name, value] : config.hardware) lines.Add(name, value);
}

}  // namespace

Result<std::string> NcclConf(const NcclConfig& config) {
  Lines lines(config.env);
  if (!config.nics.empty()) AddNics(config, lines);
  if (!config.socket_ifname.empty()) lines.Add("NCCL_SOCKET_IFNAME", "=" + config.socket_ifname);
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

}  // namespace railhead::nccl
