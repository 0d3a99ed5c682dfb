// The delegated IPAM plugin, run as SPEC.md says.
//
// railhead-ipam serves all devices of an attachment in one call and one transaction;
// any other plugin is run once for each device, CNI_IFNAME being its name in the pod. The
// journal keeps every call, and DEL repeats it with the same words.
// Threads: waits for the child.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/plugin_config.h"
#include "cni/protocol/cni_result.h"
#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::attachment {

// Which IPAM plugin, and its runs; none without one.
void PlanIpam(const CniRequest& request, AttachPlan& plan);

// What each device of the plan was given; empty for one that gets no address.
// `locks` stay open in the child: a killed ADD leaves it running, and DEL must
// wait for it. kInvalid when it answers without an address. After an error the
// calls of the entry say which was refused, and those behind it are not in it.
Result<std::vector<CniResult>> IpamAdd(const CniRequest& request, const AttachPlan& plan,
                                       const std::vector<int>& locks, JournalEntry& entry);

// Has the DEL of these calls say which of their addresses others use, for the IPAM plugin to keep
// out of use; `confirmed` for longer. Only railhead-ipam is told: true then.
bool TellInUse(const std::vector<IpAddress>& addresses, const std::vector<IpAddress>& confirmed,
               JournalEntry& entry);

// Releases what the journal entry's ADD was given, whoever's attachment it is. After an
// ADD that did not finish, a plugin that is not installed or does not understand the words
// has nothing to release, and a pod must not be stuck for that. One that refused the ADD
// is asked too, as SPEC.md wants, but its DEL may fail.
Result<void> IpamRelease(const CniRequest& request, const JournalEntry& entry);
Result<void> IpamCheck(const CniRequest& request, const JournalEntry& entry);

// DEL without knowing what ADD did: the configured IPAM plugin, or ours if it is
// installed and none is configured (the rail may have chosen it). Pods without devices and
// those whose ADD was refused come here too, so nothing holds them up that can be told
// later: a plugin that is missing or does not understand has given nothing, and what ours
// holds without an entry, railheadd finds.
Result<void> IpamDelUnknown(const Root& root, const CniRequest& request, const PluginConfig& config);
// GC and STATUS go to the IPAM plugin too, as SPEC.md wants: to the one that DEL
// would ask.
Result<void> IpamForward(const CniRequest& request, const PluginConfig& config, const std::string& command);

}  // namespace railhead::attachment
