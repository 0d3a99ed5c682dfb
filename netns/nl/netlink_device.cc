#include "netns/nl/netlink_device.h"

#include <linux/bpf.h>
#include <linux/netlink.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/text.h"
#include "netns/nl/dcb_messages.h"
#include "netns/nl/device_attributes.h"
#include "netns/nl/device_messages.h"
#include "netns/nl/ethtool_ioctl.h"
#include "netns/nl/ethtool_messages.h"
#include "netns/nl/message.h"
#include "netns/nl/socket.h"

namespace railhead {
namespace {

class NetlinkDevices final : public DeviceApi {
 public:
  // `family`: nullopt, if the kernel has no netlink for ethtool. `has_tcx`: programs may be asked for, and
  // the namespace is the calling thread's.
  NetlinkDevices(nl::Socket route, nl::Socket generic, nl::EthtoolIoctl ioctl,
                 std::optional<std::uint16_t> family, bool bpf, bool own)
      : route_(std::move(route)),
        generic_(std::move(generic)),
        ioctl_(std::move(ioctl)),
        family_(family),
        bpf_(bpf),
        own_(own) {}

  Result<DeviceState> Read(const Link& link) override;
  Result<void> Write(const Link& link, DeviceSource source, const DeviceState& values) override;

 private:
  Result<void> ReadRoute(const Link& link, DeviceState& state);
  Result<void> ReadGeneric(int index, DeviceState& state);
  void ReadTcx(int index, DeviceState& state) const;
  Result<void> WriteEthtool(int index, DeviceSource source, const DeviceState& values);
  [[nodiscard]] Result<void> WriteTcx(int index, const DeviceField& field, const std::string& wanted) const;
  Result<void> WriteXdp(int index, const DeviceField& field, const std::string& wanted);
  Result<void> WriteQdisc(int index, const DeviceField& field, const std::string& wanted);
  Result<void> WriteDcb(const std::string& netdev, const DeviceState& values);
  Result<void> ChangeDcb(nl::Message& message);
  Result<void> WriteEach(const Link& link, DeviceSource source, const DeviceState& values);

  nl::Socket route_;
  nl::Socket generic_;
  nl::EthtoolIoctl ioctl_;
  const std::optional<std::uint16_t> family_;
  const bool bpf_;
  const bool own_;
};

Result<DeviceState> NetlinkDevices::Read(const Link& link) {
  DeviceState state;
  RH_TRY(ReadRoute(link, state));
  RH_TRY(ReadGeneric(link.index, state));
  ReadTcx(link.index, state);
  ioctl_.Read(link.name, state);
  return state;
}

Result<void> NetlinkDevices::ReadRoute(const Link& link, DeviceState& state) {
  std::vector<nl::Message> requests;
  requests.push_back(nl::GetDeviceMessage(link.index));
  requests.push_back(nl::GetDcbMessage(link.name));
  std::vector<const DeviceField*> qdiscs;
  for (const DeviceField& field : DeviceFields()) {
    if (field.source != DeviceSource::kQdisc) continue;
    qdiscs.push_back(&field);
    requests.push_back(nl::GetQdiscMessage(link.index, field));
    nl::SetValue(state, field.name, "");
  }
  std::optional<Error> gone;
  RH_TRY(route_.GetAll(requests, [&](std::size_t request, const Result<nl::Received>& answer) {
    if (!answer) {
      if (request == 0) gone = answer.error();
    } else if (request == 0) {
      nl::ParseDevice(*answer, state);
    } else if (request == 1) {
      nl::ParseDcbSettings(*answer, state);
    } else if (auto qdisc = nl::ParseQdisc(*answer)) {
      nl::SetValue(state, qdiscs[request - 2]->name, std::move(*qdisc));
    }
  }));
  if (gone) return Fail(std::move(*gone));
  return {};
}

// If a driver does not answer for a setting, the device does not have it. Whatever else the answer might
// mean, the setting could not be restored either.
Result<void> NetlinkDevices::ReadGeneric(int index, DeviceState& state) {
  if (!family_) return {};
  const auto sources = nl::EthtoolSources();
  std::vector<nl::Message> requests;
  for (const DeviceSource source : sources)
    requests.push_back(nl::GetEthtoolMessage(*family_, source, index));
  return generic_.GetAll(requests, [&](std::size_t request, const Result<nl::Received>& answer) {
    if (answer) nl::ParseEthtool(*answer, sources[request], state);
  });
}

void NetlinkDevices::ReadTcx(int index, DeviceState& state) const {
  if (!bpf_ || !own_) return;
  for (const DeviceField& field : DeviceFields()) {
    if (field.source != DeviceSource::kTcx) continue;
    const auto programs = nl::ListTcxPrograms(index, field.id);
    if (!programs) return;
    std::vector<std::string> elements;
    for (const std::uint32_t program : *programs) elements.push_back(std::to_string(program));
    nl::SetValue(state, field.name, nl::ListValue(std::move(elements)));
  }
}

Result<void> NetlinkDevices::Write(const Link& link, DeviceSource source, const DeviceState& values) {
  const std::string* value = nullptr;
  switch (source) {
    case DeviceSource::kTcx:
    case DeviceSource::kXdp:
    case DeviceSource::kQdisc:
      return WriteEach(link, source, values);
    case DeviceSource::kLink: {
      nl::Message message = nl::SetLinkMessage(link.index, values);
      return route_.Request(message);
    }
    case DeviceSource::kDcb:
      return WriteDcb(link.name, values);
    case DeviceSource::kRss:
      return ioctl_.WriteRss(link.name, values);
    case DeviceSource::kRules:
      value = values.Find("rules.list");
      return value == nullptr ? Result<void>() : ioctl_.WriteRules(link.name, *value);
    case DeviceSource::kTunables:
      return ioctl_.WriteTunables(link.name, values);
    case DeviceSource::kTimestamps:
      value = values.Find("timestamps.config");
      return value == nullptr ? Result<void>() : ioctl_.WriteTimestamps(link.name, *value);
    default:
      return WriteEthtool(link.index, source, values);
  }
}

Result<void> NetlinkDevices::WriteEach(const Link& link, DeviceSource source, const DeviceState& values) {
  for (const DeviceField& field : DeviceFields()) {
    const std::string* value = field.source == source ? values.Find(field.name) : nullptr;
    if (value == nullptr) continue;
    if (source == DeviceSource::kTcx) RH_TRY(WriteTcx(link.index, field, *value));
    if (source == DeviceSource::kXdp) RH_TRY(WriteXdp(link.index, field, *value));
    if (source == DeviceSource::kQdisc) RH_TRY(WriteQdisc(link.index, field, *value));
  }
  return {};
}

Result<void> NetlinkDevices::WriteEthtool(int index, DeviceSource source, const DeviceState& values) {
  if (!family_) return FailSys(EOPNOTSUPP, "ethtool's netlink");
  std::string mask;
  if (source == DeviceSource::kFeatures) {
    nl::Message ask = nl::GetEthtoolMessage(*family_, source, index);
    RH_TRY(generic_.Get(ask,
                        [&](const nl::Received& received) { mask = nl::ParseChangeableFeatures(received); }));
  }
  nl::Message message = nl::SetEthtoolMessage(*family_, source, index, values, mask);
  return generic_.Request(message);
}

// Only detaches: the journal has neither the order in which programs run nor their holders.
Result<void> NetlinkDevices::WriteTcx(int index, const DeviceField& field, const std::string& wanted) const {
  if (!bpf_) return Fail(ErrorCode::kUnsupported, "TCX programs are not this program's to detach");
  const auto keep = nl::ElementsOf(wanted);
  for (const std::uint32_t program : RH_TRY(nl::ListTcxPrograms(index, field.id))) {
    if (Contains(keep, std::to_string(program))) continue;
    RH_TRY(nl::DetachTcxProgram(index, field.id, program));
  }
  return {};
}

Result<void> NetlinkDevices::WriteXdp(int index, const DeviceField& field, const std::string& wanted) {
  UniqueFd program;
  // Without bpf(2), or if the program ended with its last holder, nothing is attached. The pod's program has
  // to go all the same.
  if (!wanted.empty() && bpf_) {
    auto opened = nl::OpenProgram(static_cast<std::uint32_t>(nl::NumberOf(wanted)));
    if (!opened && opened.error().code != ErrorCode::kNotFound) return Fail(opened.error());
    if (opened) program = std::move(*opened);
  }
  nl::Message message = nl::SetXdpMessage(index, field, program.get());
  return route_.Request(message);
}

Result<void> NetlinkDevices::WriteQdisc(int index, const DeviceField& field, const std::string& wanted) {
  if (wanted.empty()) {
    nl::Message message = nl::DeleteQdiscMessage(index, field);
    return route_.Request(message);
  }
  auto message = nl::AddQdiscMessage(index, field, wanted);
  if (!message) return FailSys(EINVAL, std::string(field.name));
  return route_.Request(*message);
}

Result<void> NetlinkDevices::ChangeDcb(nl::Message& message) {
  std::optional<Error> refused;
  RH_TRY(route_.Get(message, [&](const nl::Received& received) { refused = nl::ParseDcbAnswer(received); }));
  if (refused) return Fail(std::move(*refused));
  return {};
}

Result<void> NetlinkDevices::WriteDcb(const std::string& netdev, const DeviceState& values) {
  DeviceState others = values;
  if (others.values.erase("dcb.applications") == 0 || !others.values.empty()) {
    nl::Message message = nl::SetDcbMessage(netdev, others);
    RH_TRY(ChangeDcb(message));
  }
  const std::string* wanted = values.Find("dcb.applications");
  if (wanted == nullptr) return {};
  DeviceState now;
  nl::Message ask = nl::GetDcbMessage(netdev);
  RH_TRY(route_.Get(ask, [&](const nl::Received& received) { nl::ParseDcbSettings(received, now); }));
  const std::string* present = now.Find("dcb.applications");
  const auto is = nl::ElementsOf(present == nullptr ? "" : *present);
  const auto shall = nl::ElementsOf(*wanted);
  for (const bool add : {false, true}) {
    for (const std::string& element : add ? shall : is) {
      if (Contains(add ? is : shall, element)) continue;
      auto message = nl::ChangeDcbApplicationMessage(netdev, element, add);
      if (!message) return FailSys(EINVAL, "dcb.applications");
      RH_TRY(ChangeDcb(*message));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DeviceApi>> OpenNetlinkDevices(const NetNs& ns, bool bpf) {
  const std::string what = "opening the devices of " + ns.path();
  std::optional<nl::Socket> route;
  std::optional<nl::Socket> generic;
  std::optional<nl::EthtoolIoctl> ioctl;
  const auto open = [&]() -> Result<void> {
    route = RH_TRY(nl::Socket::Open(NETLINK_ROUTE));
    generic = RH_TRY(nl::Socket::Open(NETLINK_GENERIC));
    ioctl = RH_TRY(nl::EthtoolIoctl::Open());
    return {};
  };
  RH_TRY_WRAP(OpenSocketsIn(ns, open), what);
  nl::Message ask = nl::GetEthtoolFamilyMessage();
  std::optional<std::uint16_t> family;
  const auto got =
      generic->Get(ask, [&](const nl::Received& received) { family = nl::ParseEthtoolFamily(received); });
  if (!got && got.error().sys_errno != ENOENT) return Fail(Wrap(got.error(), what));
  const bool own = RH_TRY(NetNs::Current()).SameAs(ns);
  return std::make_unique<NetlinkDevices>(std::move(*route), std::move(*generic), std::move(*ioctl), family,
                                          bpf, own);
}

}  // namespace railhead

namespace railhead::nl {
namespace {

constexpr std::uint32_t kMostPrograms = 64;  // BPF_MPROG_MAX of include/linux/bpf_mprog.h

// Answers what the system call does, or -1. Bytes behind the last field that a command knows have to be zero.
long Bpf(bpf_cmd command, bpf_attr* attributes) {
  return ::syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

bpf_attr Zeroed() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof(attributes));
  return attributes;
}

}  // namespace

Result<std::vector<std::uint32_t>> ListTcxPrograms(int index, int attach_type) {
  std::vector<std::uint32_t> programs(kMostPrograms);
  bpf_attr attributes = Zeroed();
  attributes.query.target_fd = static_cast<std::uint32_t>(index);  // target_ifindex, in newer headers
  attributes.query.attach_type = static_cast<std::uint32_t>(attach_type);
  attributes.query.prog_ids = reinterpret_cast<std::uintptr_t>(programs.data());
  attributes.query.prog_cnt = kMostPrograms;
  if (Bpf(BPF_PROG_QUERY, &attributes) != 0) return FailSys(errno, "bpf");
  programs.resize(attributes.query.prog_cnt);
  return programs;
}

Result<void> DetachTcxProgram(int index, int attach_type, std::uint32_t program) {
  const UniqueFd fd = RH_TRY(OpenProgram(program));
  bpf_attr attributes = Zeroed();
  attributes.target_fd = static_cast<std::uint32_t>(index);
  attributes.attach_bpf_fd = static_cast<std::uint32_t>(fd.get());
  attributes.attach_type = static_cast<std::uint32_t>(attach_type);
  if (Bpf(BPF_PROG_DETACH, &attributes) != 0) return FailSys(errno, "bpf");
  return {};
}

Result<UniqueFd> OpenProgram(std::uint32_t program) {
  bpf_attr attributes = Zeroed();
  attributes.prog_id = program;
  const long fd = Bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
  if (fd < 0) return FailSys(errno, "bpf");
  return UniqueFd(static_cast<int>(fd));
}

}  // namespace railhead::nl
