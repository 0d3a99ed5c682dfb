// Whole configurations, for checks and schemas.
//
// A fabric.json has objects that the fabric keeps as text and parts of railheadd read. A network
// configuration has keys that railhead-ipam reads. Each new object gets its check and its schema here.
// Threads: pure functions, but for SnapshotOfThisNode(), which is thread-safe.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::railctl {

// What railheadd would advertise on this node. Errors: those of the configuration, the inventory and the
// kernel.
Result<NodeSnapshot> SnapshotOfThisNode(const Root& root, const ConfigSource& source);
// By the configuration at its default path.
Result<NodeSnapshot> SnapshotOfThisNode(const Root& root);

// By WHAT, what makes that which `railctl config schema WHAT` prints, and packages install.
std::map<std::string, nlohmann::ordered_json (*)()> Schemas();

}  // namespace railhead::railctl
