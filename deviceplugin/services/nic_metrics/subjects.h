// Which NICs are told of, and whose they are: before anything is counted.
// Threads: reads files below the root only; thread-safe.
#pragma once

#include <map>
#include <string>

#include "cni/state/journal_cache.h"
#include "deviceplugin/services/kubelet/advertisement.h"
#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "netns/base/root.h"

namespace railhead {

// By device: the PFs of all pools, and the devices of `attachments`; `free`: also devices of
// pools that are in no pod.
std::map<std::string, NicSample> NicSubjects(const Root& root, const Offer& offer,
                                             const JournalCache::Entries& attachments, bool free);

}  // namespace railhead
