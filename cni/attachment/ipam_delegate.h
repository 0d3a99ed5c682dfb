// The delegated IPAM plugin, run as SPEC.md says.
//
// The plan of an ADD has its runs (ipam_plan.h). The journal stores every call; DEL repeats it with the same
// configuration. Threads: waits for the child.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/plugin_config.h"
#include "cni/protocol/cni_request.h"
#include "cni/protocol/cni_result.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::attachment {

// The result for each device of the plan; empty for a device that gets no address. `locks` stay open in the
// child: when ADD is killed, the child goes on, and DEL must wait for it. A plugin that answers without an
// address gives kInvalid. After an error the entry's last call is the one that failed.
Result<std::vector<CniResult>> IpamAdd(const CniRequest& request, const AttachPlan& plan,
                                       const std::vector<int>& locks, JournalEntry& entry);

// Adds the conflicting addresses to the DEL calls of the entry, so that railhead-ipam quarantines them;
// `confirmed` ones for longer. Returns false for other IPAM plugins.
bool ReportAddressesInUse(const std::vector<IpAddress>& addresses, const std::vector<IpAddress>& confirmed,
                          JournalEntry& entry);

// Releases the addresses of a journal entry, which may be of another attachment than the request's. If its
// ADD did not finish, the plugin may be missing or not support the configuration: such errors are ignored.
// That plugin has nothing to release, and the pod must be able to end. A plugin that refused the ADD gets a
// DEL, too, as SPEC.md requires, but that DEL may fail.
Result<void> IpamRelease(const CniRequest& request, const JournalEntry& entry);
Result<void> IpamCheck(const CniRequest& request, const JournalEntry& entry);

// DEL without a journal entry: runs the configured IPAM plugin. Without a configured one it runs
// railhead-ipam if that is installed, since the rail may have chosen it. Also called for pods without devices
// and for refused ADDs, so errors that can be found later are ignored. A plugin that is missing or does not
// support the configuration has assigned nothing. The daemon finds addresses of railhead-ipam that have no
// entry.
Result<void> IpamDelUnknown(const Root& root, const CniRequest& request, const PluginConfig& config);
// GC and STATUS go to the IPAM plugin, too, as SPEC.md requires: to the one that DEL would run.
Result<void> IpamForward(const CniRequest& request, const PluginConfig& config, const std::string& command);

}  // namespace railhead::attachment
