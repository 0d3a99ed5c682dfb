// The delegated IPAM plugin, run as SPEC.md says.
// Threads: waits for the child.
#pragma once

#include <string>

#include "cni/plugin/config.h"
#include "cni/skel/plugin.h"
#include "cni/skel/result.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"

namespace railhead {

// `lock_fd` stays open in the child: a killed ADD leaves it running, and DEL must
// wait for it. kInvalid when it answers without an address.
Result<CniResult> IpamAdd(const CniRequest& request, const std::string& type, const std::string& rail,
                          int lock_fd);
Result<void> IpamDel(const CniRequest& request, const std::string& type, const std::string& rail);
// Releases what the journal entry's ADD was given, whoever's attachment it is. A
// plugin that is not installed any more has nothing to release.
Result<void> IpamRelease(const CniRequest& request, const JournalEntry& entry);
Result<void> IpamCheck(const CniRequest& request, const std::string& type, const std::string& rail);

// DEL without knowing what ADD did: the configured IPAM plugin, or ours if it is
// installed and none is configured (the rail may have chosen it).
Result<void> IpamDelUnknown(const CniRequest& request, const PluginConfig& config);

}  // namespace railhead
