// The NICs that the page covers, and their owners, without counters.
// Threads: reads files below the root only; thread-safe.
#pragma once

#include <map>
#include <string>

#include "cni/state/journal_cache.h"
#include "deviceplugin/node/snapshot/advertisement.h"
#include "deviceplugin/services/nic_metrics/nic_sample.h"
#include "netns/base/root.h"

namespace railhead::nic_metrics {

// By device: the PFs of all pools, and the devices of `attachments`.
std::map<std::string, NicSample> NicSubjects(const Root& root, const Advertisement& advertisement,
                                             const JournalCache::Entries& attachments);

}  // namespace railhead::nic_metrics
