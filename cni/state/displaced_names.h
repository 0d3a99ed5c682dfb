// Displaced names: devices that are on the host under a substitute name, since somebody has their own.
//
// While a NIC is in a pod, another interface can take its host name or one of its alternative names; also a
// second NIC that comes back from its own pod under that name (default_device_exit_net in net/core/dev.c). A
// device must come back all the same: it gets the substitute name, and a record here says what its names are.
// The next ADD takes them from the record, so they are never forgotten. Who frees a name gives it back.
//
// One file per device on tmpfs, written before the device is renamed and removed when it has all of its names
// again. Threads and processes: callers hold the device's lock. Errors: kIo, kMalformed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
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

// The n-th substitute: "rh000043100" for 0000:43:10.0, then "rh000043100a" and so on, for a pod can take
// these names, too. At most 15 characters.
inline constexpr int kSubstitutes = 27;
std::string SubstituteName(const std::string& device, int n = 0);
bool IsSubstituteName(const std::string& device, const std::string& name);

Result<std::optional<OwnNames>> ReadDisplacedNames(const Root& root, const std::string& device);
Result<void> WriteDisplacedNames(const Root& root, const std::string& device, const OwnNames& names);
Result<void> RemoveDisplacedNames(const Root& root, const std::string& device);
// The devices that have a record.
Result<std::vector<std::string>> ListDisplacedDevices(const Root& root);

// The device's own name. `current`: what it is called on the host now.
Result<std::string> OwnNameOf(const Root& root, const std::string& device, const std::string& current);

}  // namespace railhead
