// The VFs that fabric.json states, before the first look at what the node has.
//
// Logs what was changed, and as warnings what was refused or failed: what is there is
// served all the same. Where nothing is to be done this is one look at the PFs.
// `watch` hears what is done as soon as something is, and may stop it.
// Threads: as Kernel. Errors: only those of the configuration.
#pragma once

#include "deviceplugin/node/resources/advertised.h"
#include "deviceplugin/services/provision/apply_progress.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

// Does nothing when the daemon serves sriov-network-device-plugin's configuration, and
// when the fabric does not ask for it.
Result<void> ProvisionAtStart(const Root& root, Kernel& kernel, const ConfigSource& source,
                              const ApplyWatch& watch, Log* log);

}  // namespace railhead
