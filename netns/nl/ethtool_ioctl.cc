#include "netns/nl/ethtool_ioctl.h"

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

#include "netns/base/text.h"
#include "netns/nl/attributes.h"
#include "netns/nl/device_attributes.h"

namespace railhead::nl {
namespace {

using Bytes = std::vector<std::uint8_t>;

// The structure's type can be older than the kernel's: the first reserved byte is a field (input_xfrm)
// since 6.8.
std::uint8_t& Transformation(ethtool_rxfh& head) {
  return reinterpret_cast<std::uint8_t*>(&head)[offsetof(ethtool_rxfh, hfunc) + 1];
}

template <typename T>
Bytes WithHead(const T& head, std::size_t behind) {
  Bytes bytes(sizeof(T) + behind);
  std::memcpy(bytes.data(), &head, sizeof(T));
  return bytes;
}

// "LOCATION/SPECIFICATION/CONTEXT": the rule as the kernel has it, and for which RSS context.
std::string RuleText(const ethtool_rxnfc& rule) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&rule.fs);
  const std::uint32_t context = (rule.fs.flow_type & FLOW_RSS) != 0 ? rule.rss_context : 0;
  return std::to_string(rule.fs.location) + "/" + ToHex({bytes, sizeof(rule.fs)}) + "/" +
         std::to_string(context);
}

// false: `element` is not a rule. (An optional cannot hold the structure: it ends with a flexible array.)
bool ReadRule(const std::string& element, ethtool_rxnfc* rule) {
  const auto parts = Split(element, '/');
  const auto bytes = parts.size() == 3 ? FromHex(parts[1]) : std::nullopt;
  if (!bytes || bytes->size() != sizeof(ethtool_rx_flow_spec)) return false;
  std::memcpy(&rule->fs, bytes->data(), sizeof(rule->fs));
  if ((rule->fs.flow_type & FLOW_RSS) != 0)
    rule->rss_context = static_cast<std::uint32_t>(NumberOf(parts[2]));
  return true;
}

// How the kernel spreads queues over a table that nobody has set (ethtool_rxfh_indir_default).
bool IsDefaultTable(const Bytes& table, std::uint64_t queues) {
  for (std::size_t i = 0; i < table.size() / sizeof(std::uint32_t); ++i) {
    std::uint32_t queue = 0;
    std::memcpy(&queue, table.data() + i * sizeof(queue), sizeof(queue));
    if (queues == 0 || queue != i % queues) return false;
  }
  return true;
}

std::uint32_t TunableType(const DeviceField& field) {
  return field.form == DeviceForm::kU16 ? ETHTOOL_TUNABLE_U16 : ETHTOOL_TUNABLE_U32;
}
std::uint32_t TunableSize(const DeviceField& field) {
  return field.form == DeviceForm::kU16 ? sizeof(std::uint16_t) : sizeof(std::uint32_t);
}

Result<void> CallDriver(int socket, const std::string& netdev, unsigned long request, void* data) {
  ifreq call{};
  if (netdev.empty() || netdev.size() >= sizeof(call.ifr_name)) return FailSys(ENODEV, netdev);
  std::memcpy(call.ifr_name, netdev.data(), netdev.size());
  call.ifr_data = static_cast<char*>(data);
  int done = 0;
  do {
    done = ::ioctl(socket, request, &call);
  } while (done != 0 && errno == EINTR);
  if (done != 0) return FailSys(errno, netdev);
  return {};
}

}  // namespace

std::string BusInfo(int socket, const std::string& netdev) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  if (!CallDriver(socket, netdev, SIOCETHTOOL, &info)) return "";
  const std::string_view name(info.bus_info, sizeof(info.bus_info));
  return std::string(name.substr(0, name.find('\0')));
}

Result<EthtoolIoctl> EthtoolIoctl::Open() {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return FailSys(errno, "opening a socket for ethtool");
  return EthtoolIoctl(std::move(fd));
}

Result<void> EthtoolIoctl::Call(const std::string& netdev, unsigned long request, void* data) const {
  return CallDriver(fd_.get(), netdev, request, data);
}

Result<std::uint64_t> EthtoolIoctl::CountQueues(const std::string& netdev) const {
  ethtool_rxnfc command{};
  command.cmd = ETHTOOL_GRXRINGS;
  RH_TRY(Call(netdev, SIOCETHTOOL, &command));
  return command.data;
}

void EthtoolIoctl::Read(const std::string& netdev, DeviceState& state) const {
  // Drivers that do not know their receive queues have neither RSS nor rules.
  if (CountQueues(netdev)) {
    ReadRss(netdev, state);
    if (auto rules = ReadRules(netdev)) SetValue(state, "rules.list", std::move(*rules));
  }
  ReadTunables(netdev, state);
  hwtstamp_config config{};
  if (Call(netdev, SIOCGHWTSTAMP, &config)) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&config);
    SetValue(state, "timestamps.config", ToHex({bytes, sizeof(config)}));
  }
}

void EthtoolIoctl::ReadRss(const std::string& netdev, DeviceState& state) const {
  for (const DeviceField& field : DeviceFields()) {
    if (field.source != DeviceSource::kRss || field.id <= 0) continue;
    ethtool_rxnfc command{};
    command.cmd = ETHTOOL_GRXFH;
    command.flow_type = static_cast<std::uint32_t>(field.id);
    if (Call(netdev, SIOCETHTOOL, &command)) SetValue(state, field.name, std::to_string(command.data));
  }
  ethtool_rxfh head{};
  head.cmd = ETHTOOL_GRSSH;
  if (!Call(netdev, SIOCETHTOOL, &head)) return;
  const std::size_t table = head.indir_size * sizeof(std::uint32_t);
  head.cmd = ETHTOOL_GRSSH;
  Transformation(head) = 0;
  Bytes bytes = WithHead(head, table + head.key_size);
  if (!Call(netdev, SIOCETHTOOL, bytes.data())) return;
  std::memcpy(&head, bytes.data(), sizeof(head));
  const BytesView config = BytesView(bytes).subspan(sizeof(head));
  if (table > 0) SetValue(state, "rss.table", ToHex(config.first(table)));
  if (head.key_size > 0) SetValue(state, "rss.key", ToHex(config.subspan(table)));
  SetValue(state, "rss.function", std::to_string(head.hfunc));
  SetValue(state, "rss.transformation", std::to_string(Transformation(head)));
}

Result<std::string> EthtoolIoctl::ReadRules(const std::string& netdev) const {
  // Rules that are added between the two calls do not fit, which the driver answers with EMSGSIZE.
  constexpr std::uint32_t kSlack = 16;
  ethtool_rxnfc command{};
  command.cmd = ETHTOOL_GRXCLSRLCNT;
  RH_TRY(Call(netdev, SIOCETHTOOL, &command));
  if (command.rule_cnt == 0) return std::string();
  const std::uint32_t room = command.rule_cnt + kSlack;
  command = {};
  command.cmd = ETHTOOL_GRXCLSRLALL;
  command.rule_cnt = room;
  Bytes bytes = WithHead(command, room * sizeof(std::uint32_t));
  RH_TRY(Call(netdev, SIOCETHTOOL, bytes.data()));
  std::memcpy(&command, bytes.data(), sizeof(command));
  std::vector<std::string> elements;
  for (std::uint32_t i = 0; i < std::min(command.rule_cnt, room); ++i) {
    ethtool_rxnfc rule{};
    rule.cmd = ETHTOOL_GRXCLSRULE;
    std::memcpy(&rule.fs.location, bytes.data() + offsetof(ethtool_rxnfc, rule_locs) + i * sizeof(i),
                sizeof(i));
    RH_TRY(Call(netdev, SIOCETHTOOL, &rule));
    elements.push_back(RuleText(rule));
  }
  return ListValue(std::move(elements));
}

void EthtoolIoctl::ReadTunables(const std::string& netdev, DeviceState& state) const {
  for (const DeviceField& field : DeviceFields()) {
    if (field.source != DeviceSource::kTunables) continue;
    const ethtool_tunable head{ETHTOOL_GTUNABLE, static_cast<std::uint32_t>(field.id), TunableType(field),
                               TunableSize(field)};
    Bytes bytes = WithHead(head, sizeof(std::uint32_t));
    if (Call(netdev, SIOCETHTOOL, bytes.data()))
      StoreField(state, field, BytesView(bytes).subspan(sizeof(head), head.len));
  }
}

Result<void> EthtoolIoctl::WriteRss(const std::string& netdev, const DeviceState& values) const {
  RH_TRY(WriteRssTable(netdev, values));
  for (const DeviceField& field : DeviceFields()) {
    const bool flow = field.source == DeviceSource::kRss && field.id > 0;
    const std::string* value = flow ? values.Find(field.name) : nullptr;
    if (value == nullptr) continue;
    ethtool_rxnfc command{};
    command.cmd = ETHTOOL_SRXFH;
    command.flow_type = static_cast<std::uint32_t>(field.id);
    command.data = NumberOf(*value);
    RH_TRY_WRAP(Call(netdev, SIOCETHTOOL, &command), std::string(field.name));
  }
  return {};
}

// One command could set all of them. But kernel versions look for the key behind a default table in different
// places (ethtool_set_rxfh in 6.1 and in 6.8), so each comes alone.
Result<void> EthtoolIoctl::WriteRssTable(const std::string& netdev, const DeviceState& values) const {
  const std::string* table = values.Find("rss.table");
  const std::string* key = values.Find("rss.key");
  const std::string* function = values.Find("rss.function");
  const std::string* transformation = values.Find("rss.transformation");
  if (table == nullptr && key == nullptr && function == nullptr && transformation == nullptr) return {};
  // Each command sets the transformation, so the present one has to be known.
  ethtool_rxfh head{};
  head.cmd = ETHTOOL_GRSSH;
  RH_TRY(Call(netdev, SIOCETHTOOL, &head));
  head.cmd = ETHTOOL_SRSSH;
  if (transformation != nullptr) Transformation(head) = static_cast<std::uint8_t>(NumberOf(*transformation));
  head.hfunc = 0;  // ETH_RSS_HASH_NO_CHANGE
  head.key_size = 0;
  if (table != nullptr) {
    Bytes config = FromHex(*table).value_or(Bytes{});
    // A size of 0 means the default, which follows the number of queues, unlike a table that was set.
    if (IsDefaultTable(config, RH_TRY(CountQueues(netdev)))) config.clear();
    head.indir_size = static_cast<std::uint32_t>(config.size() / sizeof(std::uint32_t));
    RH_TRY_WRAP(SendRss(netdev, WithHead(head, 0), config), "rss.table");
  }
  head.indir_size = ETH_RXFH_INDIR_NO_CHANGE;
  if (key != nullptr) {
    const Bytes config = FromHex(*key).value_or(Bytes{});
    head.key_size = static_cast<std::uint32_t>(config.size());
    RH_TRY_WRAP(SendRss(netdev, WithHead(head, 0), config), "rss.key");
    head.key_size = 0;
  }
  if (function == nullptr && transformation == nullptr) return {};
  if (function != nullptr) head.hfunc = static_cast<std::uint8_t>(NumberOf(*function));
  return WithContext(SendRss(netdev, WithHead(head, 0), {}), "rss.function");
}

Result<void> EthtoolIoctl::SendRss(const std::string& netdev, Bytes command, const Bytes& config) const {
  command.insert(command.end(), config.begin(), config.end());
  return Call(netdev, SIOCETHTOOL, command.data());
}

Result<void> EthtoolIoctl::WriteRules(const std::string& netdev, const std::string& wanted) const {
  const auto present = ElementsOf(RH_TRY(ReadRules(netdev)));
  const auto elements = ElementsOf(wanted);
  for (const std::string& element : present) {
    if (Contains(elements, element)) continue;
    ethtool_rxnfc command{};
    command.cmd = ETHTOOL_SRXCLSRLDEL;
    command.fs.location = static_cast<std::uint32_t>(NumberOf(element.substr(0, element.find('/'))));
    RH_TRY_WRAP(Call(netdev, SIOCETHTOOL, &command), "removing rule " + element);
  }
  for (const std::string& element : elements) {
    if (!Contains(present, element)) RH_TRY(InsertRule(netdev, element));
  }
  return {};
}

Result<void> EthtoolIoctl::InsertRule(const std::string& netdev, const std::string& element) const {
  ethtool_rxnfc rule{};
  if (!ReadRule(element, &rule)) return FailSys(EINVAL, "rule " + element);
  rule.cmd = ETHTOOL_SRXCLSRLINS;
  return WithContext(Call(netdev, SIOCETHTOOL, &rule), "adding rule " + element);
}

Result<void> EthtoolIoctl::WriteTunables(const std::string& netdev, const DeviceState& values) const {
  for (const DeviceField& field : DeviceFields()) {
    const std::string* value = field.source == DeviceSource::kTunables ? values.Find(field.name) : nullptr;
    if (value == nullptr) continue;
    const ethtool_tunable head{ETHTOOL_STUNABLE, static_cast<std::uint32_t>(field.id), TunableType(field),
                               TunableSize(field)};
    Bytes bytes = WithHead(head, sizeof(std::uint32_t));
    const auto number = static_cast<std::uint32_t>(NumberOf(*value));  // little-endian, also for 16 bits
    std::memcpy(bytes.data() + sizeof(head), &number, sizeof(number));
    RH_TRY_WRAP(Call(netdev, SIOCETHTOOL, bytes.data()), std::string(field.name));
  }
  return {};
}

Result<void> EthtoolIoctl::WriteTimestamps(const std::string& netdev, const std::string& config) const {
  const auto bytes = FromHex(config);
  hwtstamp_config wanted{};
  if (!bytes || bytes->size() != sizeof(wanted)) return FailSys(EINVAL, "timestamps");
  std::memcpy(&wanted, bytes->data(), sizeof(wanted));
  return Call(netdev, SIOCSHWTSTAMP, &wanted);
}

}  // namespace railhead::nl
