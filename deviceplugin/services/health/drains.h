// Drains: the PFs with all their VFs, and the single VFs, that an operator has drained on this node.
//
// /var/lib/railhead/drains.json survives reboots: a reboot does not repair a cable. `railctl drain` and
// `railctl undrain` write it, railheadd follows it. Rule `drained` (rules.h) makes the devices Unhealthy.
// Pods that have one keep it.
// Threads: functions are thread-safe, also between processes; a DrainList is one thread's.
// Errors: kIo. For a file that Railhead did not write: kMalformed and kInvalid, with the file's name. If
// another process holds the lock for ten seconds: kTimeout.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/node/inventory/inventory.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/json/state_file.h"

namespace railhead::health {

struct Drain {
  std::string device;  // PCI address of a PF or VF, or the name of a subfunction
  std::string name;    // as the operator called it: "rail0", "pf0", the address
  std::string reason;  // "" not said
  std::chrono::system_clock::time_point since;

  bool operator==(const Drain&) const = default;
};

// By device.
struct Drains {
  std::vector<Drain> drains;

  bool operator==(const Drains&) const = default;
};

inline constexpr StateFile<Drains> kDrainsFile{.path = "/var/lib/railhead/drains.json",
                                               .what = "keeping what is drained"};

// By device.
Result<std::vector<Drain>> ReadDrains(const Root& root);
// false: it was drained before; reason and time stay as they were.
Result<bool> AddDrain(const Root& root, const Drain& drain);
// false: it was not drained.
Result<bool> RemoveDrain(const Root& root, const std::string& device);

// The ids of the functions that are drained, themselves or with their PF: for the first advertisement, before
// the first health check. Errors: those of ReadDrains().
Result<std::set<std::string>> DrainedAmong(const Root& root,
                                           const std::vector<inventory::NicFunction>& functions);

// DrainList: the file, read again only when it has changed.
class DrainList {
 public:
  explicit DrainList(Root root) : root_(std::move(root)) {}

  // Whether the list has changed. After an error it stays as it was.
  Result<bool> Refresh();
  // nullptr: in use. Valid until the next Refresh().
  [[nodiscard]] const Drain* Find(const std::string& device) const;

 private:
  struct Identity {
    std::uint64_t file = 0;  // 0: no file
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;

    bool operator==(const Identity&) const = default;
  };

  Root root_;
  std::optional<Identity> read_;  // of what was read last
  std::map<std::string, Drain> drains_;
};

}  // namespace railhead::health

template <>
struct railhead::Shape<railhead::health::Drain> {
  static void List(auto& f) {
    f("device", &health::Drain::device, {.need = Need::kRequired, .column = "DEVICE"});
    f("name", &health::Drain::name, {.need = Need::kRequired, .column = "DRAINED AS"});
    f("since", &health::Drain::since, {.need = Need::kRequired, .column = "SINCE"});
    f("reason", &health::Drain::reason, {.column = "REASON"});
  }
  static std::string Key(const health::Drain& drain) { return drain.device; }
};

template <>
struct railhead::Shape<railhead::health::Drains> {
  static void List(auto& f) {
    f.Version(1);
    f("drains", &health::Drains::drains);
  }
};
