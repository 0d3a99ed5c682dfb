#include "cni/nccl/nccl_config.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/sys/selinux.h"

namespace railhead::nccl {

std::optional<int> SharedValue(const std::vector<NicConfig>& nics, std::optional<int> NicConfig::*value) {
  if (nics.empty()) return std::nullopt;
  const auto first = nics.front().*value;
  const bool same = std::ranges::all_of(nics, [&](const NicConfig& nic) { return nic.*value == first; });
  return same ? first : std::nullopt;
}

std::string FamilyName(const GidSearch& search) {
  return search.range.address.Family() == AF_INET ? "AF_INET" : "AF_INET6";
}

namespace {

// nccl.conf last: a process that finds it finds the other files, too.
constexpr std::initializer_list<const char*> kNames = {kTopologyName, kUcxConfName, kNcclConfName};

}  // namespace

std::string NcclConfigPath(const Root& root, const std::string& container, const std::string& name) {
  return paths::NcclConfigDirectory(root, container) + "/" + name;
}

std::string DeviceNcclConfigPath(const Root& root, const std::string& bdf) {
  return paths::DeviceNcclConfigDirectory(root, bdf) + "/nccl.conf";
}

Result<void> WriteNcclConfig(const Root& root, const std::string& container,
                             const std::vector<NcclConfigFile>& files) {
  // Before anything is removed there.
  RH_TRY(CheckStateFolder(root, paths::NcclConfigDirectory(root, container)));
  for (const char* name : kNames) {
    const std::string path = NcclConfigPath(root, container, name);
    const auto file = std::ranges::find(files, name, &NcclConfigFile::name);
    if (file == files.end()) {
      RH_TRY(RemoveWritten(path));
    } else {
      RH_TRY(WriteStateFile(root, path, file->text));
      RH_TRY(LabelForContainers(root, path));
    }
  }
  return {};
}

Result<void> RemoveNcclConfig(const Root& root, const std::string& container) {
  RH_TRY(CheckStateFolder(root, paths::NcclConfigDirectory(root, container)));
  for (const char* name : kNames) RH_TRY(RemoveWritten(NcclConfigPath(root, container, name)));
  (void)RemoveEmptyDirectory(paths::NcclConfigDirectory(root, container));
  return {};
}

Result<void> WriteDeviceNcclConfig(const Root& root, const std::string& bdf, const std::string& nccl_conf) {
  RH_TRY(MakeStateFolder(root, paths::DeviceNcclConfigDirectory(root, bdf)));
  (void)RemoveEmptyDirectory(DeviceNcclConfigPath(root, bdf));
  RH_TRY(WriteInPlace(DeviceNcclConfigPath(root, bdf), nccl_conf));
  return LabelForContainers(root, DeviceNcclConfigPath(root, bdf));
}

Result<void> ClearDeviceNcclConfig(const Root& root, const std::string& bdf) {
  RH_TRY(CheckStateFolder(root, paths::DeviceNcclConfigDirectory(root, bdf)));
  // A folder that a runtime made for a missing mount source.
  (void)RemoveEmptyDirectory(DeviceNcclConfigPath(root, bdf));
  if (!Exists(DeviceNcclConfigPath(root, bdf))) return {};
  return WriteInPlace(DeviceNcclConfigPath(root, bdf), "");
}

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

namespace {

// A table slot as NCCL sees it; an empty one is the GID of zeros.
struct Slot {
  IpAddress address = *IpAddress::Parse("::");
  std::optional<GidType> type;

  // Only fe80::/64: NCCL treats an IPv4 address of 169.254.0.0/16 like any other.
  [[nodiscard]] bool IsValid() const {
    static const IpPrefix link_local = *IpPrefix::Parse("fe80::/64");
    return !address.IsUnspecified() && !link_local.Contains(address);
  }
};

std::vector<Slot> SlotsOf(const std::vector<GidEntry>& table) {
  std::vector<Slot> slots(1);
  for (const GidEntry& entry : table) {
    const auto index = static_cast<std::size_t>(entry.index);
    if (slots.size() <= index) slots.resize(index + 1);
    slots[index] = {AddressOfGid(entry.gid), entry.type};
  }
  return slots;
}

// The smallest prefix that has all of them; nullopt: of several families.
std::optional<IpPrefix> Cover(const std::vector<NicConfig>& nics) {
  IpPrefix cover = IpPrefix::Host(nics.front().address);
  for (const NicConfig& nic : nics) {
    if (nic.address.Family() != cover.address.Family()) return std::nullopt;
    while (!cover.Contains(nic.address)) cover = IpPrefix{cover.address, cover.length - 1}.Network();
  }
  return cover;
}

std::string IndexOf(const NicConfig& nic) {
  return nic.rdma_device + " " + std::to_string(nic.gid_index);
}

}  // namespace

std::optional<int> NcclPicks(const std::vector<GidEntry>& table, const GidSearch& search) {
  const std::vector<Slot> slots = SlotsOf(table);
  const int family = search.range.address.Family();
  if (search.range.address.IsV6() && slots.front().address.IsUnspecified()) return std::nullopt;
  std::size_t picked = 0;
  for (std::size_t i = 1; i < slots.size(); ++i) {
    const Slot& now = slots[picked];
    const Slot& candidate = slots[i];
    if (candidate.address.Family() != family || !search.range.Contains(candidate.address)) continue;
    // An address of the requested family replaces one of another family, whatever its RoCE version.
    const bool other_family = now.address.Family() != family;
    const bool better = candidate.IsValid() && candidate.type == GidType::kRoceV2 &&
                        (candidate.type != now.type || !now.IsValid());
    if (other_family || better) picked = i;
  }
  return static_cast<int>(picked);
}

Result<GidSelection> SelectGids(const std::vector<NicConfig>& nics, const GidTableReader& table_of) {
  const int first = nics.front().gid_index;
  const bool alike = std::ranges::all_of(nics, [&](const NicConfig& nic) { return nic.gid_index == first; });
  if (alike) return first;
  const auto cover = Cover(nics);
  bool found = cover.has_value();
  std::string indices;
  std::string tables;
  for (const NicConfig& nic : nics) {
    const auto table = RH_TRY(table_of(nic));
    found = found && NcclPicks(table, {*cover}) == nic.gid_index;
    indices += (indices.empty() ? "" : ", ") + IndexOf(nic);
    tables += "\n" + nic.rdma_device + ", where " + nic.address.ToString() + " is meant:\n" + Describe(table);
  }
  if (found) return GidSearch{*cover};
  return Fail(
      ErrorCode::kConflict, "the pod's NICs have different GID indices: " + indices,
      "NCCL takes one index for all HCAs, and its own search would take another address" +
          std::string(cover ? " of " + cover->ToString() : ", for they are of both families") +
          ": look for further addresses on one of the NICs, for a GID table without an entry 0 and "
          "IPv6, which NCCL before 2.26 cannot search, or for devices of different RoCE capabilities in "
          "one pool. GID tables:" +
          tables);
}

}  // namespace railhead::nccl
