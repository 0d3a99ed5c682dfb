// Puts the programs that the container runtime starts into its directory of CNI plugins.
//
// A program that says it is newer than ours is not replaced without `force`: a node may be
// updated by two hands, and during an update of the DaemonSet the older of two pods may be the one
// that starts last. Both programs or none: nothing is written when one of them may not be.
// What runs goes on with the file that it has (directory.h); the next ADD runs the new one.
// Threads: one; waits for children. Errors: kNotFound for a directory or a program of ours that is
// not there, kInvalid for one that does not run, kConflict when the host's is newer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/install/directory.h"
#include "netns/base/result.h"

namespace railhead {

struct ProgramOrder {
  std::string from;  // directory
  std::string to;    // directory
  std::vector<std::string> names{"railhead", "railhead-ipam"};
  bool force = false;
};

struct InstalledProgram {
  std::string name;
  InstallOutcome outcome = InstallOutcome::kUnchanged;
  std::string version;
  std::optional<std::string> previous;  // nullopt: there was none, or none that tells its version
};

Result<std::vector<InstalledProgram>> InstallPrograms(const ProgramOrder& order);

}  // namespace railhead
