// RefusalOfDeviceInfoFile: whether a network may name a path for its device-info file.
//
// An author of networks may write runtimeConfig, too, and name any path. So only files of the specification's
// folder are written and removed (Network Plumbing Working Group, device-info specification 1.1.0).
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace railhead::attachment {

// Whether it is a file in the folder of the specification; "": yes, otherwise why not.
std::string RefusalOfDeviceInfoFile(const std::string& path);

// The file's name in the folder; "": it is in another one. /var/run is a link to /run.
std::string NameOfDeviceInfoFile(std::string_view path);

}  // namespace railhead::attachment
