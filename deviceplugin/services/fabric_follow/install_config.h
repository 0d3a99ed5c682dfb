// fabric.json and topology.json, from the directory where people put them to where all parts read them.
//
// railctl and railheadd use the same steps: all or nothing of a directory is valid, and rails in use keep
// their present definitions (compose.h).
// Threads: functions are thread-safe, also between processes while the caller has the InstallDirectory.
// Errors: kIo, and those of Compose(). After an error nothing has changed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "deviceplugin/services/fabric_follow/compose.h"
#include "deviceplugin/support/install/install_directory.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::fabric_follow {

inline constexpr const char* kConfigDirectory = "/etc/railhead";
inline constexpr const char* kFabricName = "fabric.json";
inline constexpr const char* kTopologyName = "topology.json";
inline constexpr mode_t kConfigMode = 0644;

struct WantedConfig {
  std::vector<install::FileToInstall> files;
  std::vector<Error> errors;  // with JSON pointers; a missing fabric.json is one
};
// What `node` has to have: of a fabric.json with groups of nodes the fabric of that node. "": its name is not
// known, which is an error of such a fabric only.
Result<WantedConfig> ReadWanted(const std::string& directory, const std::string& node);

// Replaces the fabric among `files` by the one that the node may have now. The first fabric of a node, and
// one that replaces an invalid fabric, stays as it is. `root`: of the journal.
Result<std::vector<PendingChange>> KeepBusyRails(const Root& root, const install::InstallDirectory& directory,
                                                 std::vector<install::FileToInstall>* files);

}  // namespace railhead::fabric_follow
