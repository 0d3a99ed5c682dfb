// ProvisionAtStart: makes the VFs that fabric.json states, before the first discovery of the node.
//
// Logs changes, and refusals and failures as warnings: existing VFs are served all the same. Without work
// this only reads the PFs. `watch` gets the progress of changes, and may stop them. Threads: as Kernel.
// Errors: only those of the configuration.
#pragma once

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/services/provision/apply_watch.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::discovery {

// Does nothing when the daemon serves sriov-network-device-plugin's configuration, and
// when the fabric has no such settings.
Result<void> ProvisionAtStart(const Root& root, Kernel& kernel, const ConfigSource& source,
                              const provision::ApplyWatch& watch, Log* log);

}  // namespace railhead::discovery
