// Where the rails hang, as railheadd tells it: log and metrics of LeafWatch.
// Threads: as LeafWatch, Log and Exposition.
#pragma once

#include <memory>

#include "deviceplugin/services/lldp/lldp_watch.h"
#include "deviceplugin/services/lldp/node_labels.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/exposition.h"
#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

// `features` is borrowed.
Result<std::unique_ptr<LeafWatch>> StartLeafWatch(const Root& root, Kernel& kernel, NodeFeatures* features,
                                                  Log* log);

// What is different from before.
void LogLeaves(Log* log, const LeafReport& before, const LeafReport& now);

void AppendLeaves(Exposition* page, const LeafReport& report);

}  // namespace railhead
