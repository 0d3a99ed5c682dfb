// Settings of devices, and DeviceApi in one namespace of a FakeKernel.
#include <algorithm>
#include <cerrno>

#include "netns/base/text.h"
#include "tests/support/fake_kernel/fake_kernel.h"

namespace railhead::testing {
namespace {

constexpr int kQueues = 4;
constexpr std::uint64_t kLargestLegacyGso = 65536;  // GSO_LEGACY_MAX_SIZE

std::vector<std::string> ElementsOf(const std::string& list) {
  return list.empty() ? std::vector<std::string>{} : Split(list, ',');
}

// The highest queue that an RSS table names. Its entries are 32 bits, little-endian.
int HighestQueue(const std::string& table) {
  int highest = 0;
  for (std::size_t at = 0; at + 8 <= table.size(); at += 8)
    highest = std::max(highest, static_cast<int>(ParseHex(table.substr(at, 2)).value_or(0)));
  return highest;
}

const std::string* ValueOf(const FakeNetdev& netdev, const char* name) {
  return netdev.device.Find(name);
}

// Checks that drivers and ethtool's core make across settings (ethtool_check_max_channel; set_channels with
// XDP in mlx5 and others).
int CheckQueues(const FakeNetdev& netdev, const std::string& name, const std::string& value) {
  const std::string* table = ValueOf(netdev, "rss.table");
  const std::string* queues = ValueOf(netdev, "channels.combined");
  const std::string* program = ValueOf(netdev, "xdp.driver");
  const bool channels = name == "channels.combined";
  if (channels && program != nullptr && !program->empty()) return EBUSY;
  const auto count = ParseInt(channels ? value : queues == nullptr ? "" : *queues);
  const std::string* queue_table = name == "rss.table" ? &value : table;
  if (!channels && name != "rss.table") return 0;
  return count && queue_table != nullptr && HighestQueue(*queue_table) >= *count ? EINVAL : 0;
}

class FakeDevices final : public DeviceApi {
 public:
  FakeDevices(FakeKernel& kernel, std::string ns) : kernel_(kernel), ns_(std::move(ns)) {}

  Result<DeviceState> Read(const Link& link) override {
    const std::string what = "reading the settings of " + link.name;
    if (const auto injected = kernel_.Begin("ReadDevice", link.name)) return FailSys(injected.error, what);
    const FakeNetdev* netdev = kernel_.state().Find(ns_, link.index);
    if (netdev == nullptr) return FailSys(ENODEV, what);
    return netdev->device;
  }

  Result<void> Write(const Link& link, DeviceSource source, const DeviceState& values) override {
    std::string text = link.name;
    for (const auto& [name, value] : values.values) text.append(" ").append(name).append("=").append(value);
    const auto injected = kernel_.Begin("WriteDevice", text);
    if (injected.Refused()) return FailSys(injected.error, "setting " + text);
    FakeNetdev* netdev = kernel_.state().Find(ns_, link.index);
    if (netdev == nullptr) return kernel_.Finish(ENODEV, "setting " + text);
    DeviceState done = values;
    if (injected && done.values.size() > 1)
      done.values.erase(std::next(done.values.begin()), done.values.end());
    const int error = kernel_.state().WriteDevice(*netdev, source, done);
    return kernel_.Finish(injected ? injected.error : error, "setting " + text);
  }

 private:
  FakeKernel& kernel_;
  std::string ns_;
};

}  // namespace

DeviceState AllSettings() {
  DeviceState state;
  for (const DeviceField& field : DeviceFields()) {
    std::string& value = state.values[std::string(field.name)];
    const bool bits = field.form == DeviceForm::kBits || field.form == DeviceForm::kBytes;
    if (field.form != DeviceForm::kList) value = bits ? "0000000f" : "1";
  }
  state.values["link.gso-max-size"] = state.values["link.gso-ipv4-max-size"] =
      std::to_string(kLargestLegacyGso);
  state.values["channels.combined"] = std::to_string(kQueues);
  state.values["rss.table"] = "00000000010000000200000003000000";
  return state;
}

// Sources: include/uapi/linux/ethtool_netlink.h and include/uapi/linux/if_link.h of the releases.
FakeRelease ReleaseOf(std::string_view field) {
  static constexpr std::pair<std::string_view, FakeRelease> kSince[] = {
      {"tcx.", {6, 6}},
      {"link.gso-ipv4-max-size", {6, 3}},
      {"link.gro-ipv4-max-size", {6, 3}},
      {"link.gro-max-size", {5, 17}},
      {"rings.rx-buf-len", {5, 16}},
      {"rings.cqe-size", {5, 17}},
      {"rings.tx-push", {5, 17}},
      {"rings.rx-push", {6, 3}},
      {"rings.tcp-data-split", {5, 18}},
      {"rings.hds-threshold", {6, 14}},
      {"coalesce.cqe-mode", {5, 15}},
      {"coalesce.tx-aggr", {6, 3}},
      {"coalesce.rx-profile", {6, 11}},
      {"coalesce.tx-profile", {6, 11}},
      {"fec.", {5, 13}},
      {"eee.", {5, 7}},
      {"pause.", {5, 7}},
      {"coalesce.", {5, 7}},
      {"channels.", {5, 7}},
      {"rings.", {5, 7}},
      {"features.", {5, 7}},
      {"private-flags.", {5, 7}},
      {"wake-on-lan.", {5, 6}},
      {"debug.", {5, 6}},
  };
  for (const auto& [name, release] : kSince) {
    if (field.starts_with(name)) return release;
  }
  return {0, 0};
}

int FakeState::WriteDevice(FakeNetdev& netdev, DeviceSource source, const DeviceState& values) {
  for (const DeviceField& field : DeviceFields()) {
    const std::string* wanted = field.source == source ? values.Find(field.name) : nullptr;
    if (wanted == nullptr) continue;
    const std::string name(field.name);
    const auto present = netdev.device.values.find(name);
    if (present == netdev.device.values.end()) return EOPNOTSUPP;
    if (!IsDeviceValue(field, *wanted)) return EINVAL;
    if (const int error = CheckQueues(netdev, name, *wanted); error != 0) return error;
    std::string value = *wanted;
    if (source == DeviceSource::kXdp || source == DeviceSource::kTcx) {
      for (const std::string& program : ElementsOf(present->second)) {
        if (netdev.linked_programs.contains(program) && program != value) return EBUSY;
      }
    }
    if (source == DeviceSource::kXdp && !programs.contains(value)) value.clear();
    if (source == DeviceSource::kTcx) {  // nothing is attached here, only detached
      auto left = ElementsOf(present->second);
      std::erase_if(left, [&](const std::string& one) { return !Contains(ElementsOf(*wanted), one); });
      value = Join(left, ",");
    }
    present->second = value;
    if (name == "link.gso-max-size" && ParseInt(value).value_or(0) <= static_cast<int>(kLargestLegacyGso) &&
        netdev.device.Find("link.gso-ipv4-max-size") != nullptr)
      netdev.device.values["link.gso-ipv4-max-size"] = value;  // netif_set_gso_max_size()
  }
  return 0;
}

std::unique_ptr<DeviceApi> MakeFakeDevices(FakeKernel& kernel, const std::string& ns) {
  return std::make_unique<FakeDevices>(kernel, ns);
}

}  // namespace railhead::testing
