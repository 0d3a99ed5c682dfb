// Displaced names: devices that have a substitute name on the host, since another interface has their own.
//
// While a NIC is in a pod, another interface can get its host name or one of its alternative names. That can
// also be a second NIC that returns from its own pod under that name (default_device_exit_net in
// net/core/dev.c). The device must return nevertheless: it gets a substitute name, and a record here stores
// its own names. The next ADD reads the names from the record, so they are never lost. A call that frees a
// name gives it to its device again.
//
// One file per device on tmpfs, written before the device is renamed and removed when it has all of its names
// again. Threads and processes: callers hold the device's lock. Errors: kIo, kMalformed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead {

struct OwnNames {
  std::string name;
  std::vector<std::string> alt_names;

  bool operator==(const OwnNames&) const = default;
};

template <>
struct Shape<OwnNames> {
  static void List(auto& f) {
    f("name", &OwnNames::name, kRequiredField);
    f("altNames", &OwnNames::alt_names);
  }
};

// The n-th substitute: "rh000043100" for 0000:43:10.0, then "rh000043100a" and so on, since a pod can use
// these names, too. At most 15 characters.
inline constexpr int kSubstitutes = 27;
std::string SubstituteName(const std::string& device, int n = 0);
bool IsSubstituteName(const std::string& device, const std::string& name);

Result<std::optional<OwnNames>> ReadDisplacedNames(const Root& root, const std::string& device);
Result<void> WriteDisplacedNames(const Root& root, const std::string& device, const OwnNames& names);
Result<void> RemoveDisplacedNames(const Root& root, const std::string& device);
// The devices that have a record.
Result<std::vector<std::string>> ListDisplacedDevices(const Root& root);

// The device's own name. `current`: its present name on the host.
Result<std::string> OwnNameOf(const Root& root, const std::string& device, const std::string& current);

}  // namespace railhead
