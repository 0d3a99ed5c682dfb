// Settings of a network device that go with it from one network namespace to another.
//
// A move closes the device. It removes the device's qdiscs with their filters, its addresses, its unicast and
// multicast lists and its sysctls (__dev_change_net_namespace in net/core/dev.c). The settings in the table
// below stay on the device until somebody changes them or the driver is bound again. Then
// unregister_netdevice_many_notify removes XDP and TCX programs, and the driver starts with its defaults. The
// qdiscs are in the table because the move to the pod removes the host's, too.
//
// A value is text, so that it can be stored and shown as it is. A number is decimal, bytes and bit sets are
// hexadecimal, and a list has its sorted elements with commas between them.
// Threads: values.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace railhead {

// Which part of the kernel is asked for a field. The fields of one source are one setting: they are read
// together and written together.
enum class DeviceSource : std::uint8_t {
  kTcx,           // BPF programs at ingress and egress, Linux 6.6
  kXdp,           // BPF programs in the driver, in the network stack, in the device
  kLink,          // rtnetlink
  kQdisc,         // traffic control
  kPrivateFlags,  // from here to kDebug: generic netlink "ethtool"
  kFeatures,
  kChannels,
  kRings,
  kCoalesce,
  kPause,
  kFec,
  kEee,
  kWakeOnLan,
  kDebug,
  kDcb,
  kRss,  // from here on: ioctl, which old kernels have, too
  kRules,
  kTunables,
  kTimestamps,
};

enum class DeviceForm : std::uint8_t { kU8, kU16, kU32, kU64, kBytes, kBits, kList };

enum class DeviceFieldKind : std::uint8_t {
  kSetting,
  // The driver reports what is in force, which can depend on the link, the MTU or the traffic. If the value
  // differs after an accepted write, the driver chose it.
  kReported,
  // A list of objects attached to the device. An object that was attached before and is gone may be gone for
  // good.
  kAttached,
};

struct DeviceField {
  std::string_view name;  // "rings.rx": rx of the setting "rings"
  DeviceSource source;
  int id;  // of the attribute, flow type, tunable or attach type
  DeviceForm form;
  DeviceFieldKind kind = DeviceFieldKind::kSetting;

  [[nodiscard]] std::string_view Setting() const { return name.substr(0, name.find('.')); }
};

// In the order in which they are written. Programs come first, since they restrict other settings: an XDP
// program refuses large MTUs, LRO and few channels. Channels come before the settings that are spread over
// them.
std::span<const DeviceField> DeviceFields();
// nullptr: no field has that name.
const DeviceField* FindDeviceField(std::string_view name);
// Whether a reader can have made this value of the field.
bool IsDeviceValue(const DeviceField& field, std::string_view value);

// By the field's name. What the driver does not have is absent.
struct DeviceState {
  std::map<std::string, std::string, std::less<>> values;

  [[nodiscard]] const std::string* Find(std::string_view name) const {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : &found->second;
  }
  bool operator==(const DeviceState&) const = default;
};

}  // namespace railhead
