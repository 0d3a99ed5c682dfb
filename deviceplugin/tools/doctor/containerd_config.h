// What the configurations of containerd and CRI-O say of CDI.
//
// These are TOML. Of that, sections, dotted keys and values on one line are understood, and arrays over
// several lines: what their documentation and installers write. Other constructs are passed over.
// Source: containerd's docs/cri/config.md, crio.conf(5).
// Threads: ParseToml is pure; ReadCdiSwitch reads files below `root` at the call.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/tools/doctor/facts.h"
#include "netns/base/files.h"

namespace railhead::doctor {

// Values as they stand there, by full key without quotes: "plugins.io.containerd.grpc.v1.cri.enable_cdi".
using TomlValues = std::map<std::string, std::string>;
TomlValues ParseToml(std::string_view text);

// The strings of an array, "[\"/etc/cdi\", '/run/cdi']".
std::vector<std::string> TomlStrings(std::string_view value);

// `running`: names of the container runtimes that were seen among the processes.
Fact<CdiSwitch> ReadCdiSwitch(const Root& root, const std::vector<std::string>& running);

}  // namespace railhead::doctor
