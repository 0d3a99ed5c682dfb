// A resolv.conf as the `dns` object of a CNI result.
// Errors: kNotFound when the file is not there, otherwise by errno. Threads: pure but for
// reading the file. Source: resolv.conf(5).
#pragma once

#include <string>

#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::ipam {

// `path` is taken below `root`. {"nameservers": [...], "domain": "...", "search": [...], "options": [...]}
Result<std::string> DnsOfResolvConf(const Root& root, const std::string& path);

}  // namespace railhead::ipam
