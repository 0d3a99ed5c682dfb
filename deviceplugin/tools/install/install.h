// Puts programs of ours into a directory of the host: those that the container runtime starts, or railctl.
//
// Without `allow_downgrade`, a newer program on the host stays. A node may be updated in two ways. During an
// update of the DaemonSet the older of two pods may start last. Either both programs are replaced, or none. A
// running program keeps its old file; the next ADD runs the new one. Threads: one; waits for children.
// Errors: kNotFound for a missing directory or program of `from`, kInvalid for a program that does not run,
// or is for another machine, kConflict when the host's is newer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/support/install/install_directory.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::install {

struct ProgramOrder {
  std::string from;  // directory
  std::string to;    // directory
  std::vector<std::string> names{"railhead", "railhead-ipam"};
  bool allow_downgrade = false;
};

struct InstalledProgram {
  std::string name;
  InstallOutcome outcome = InstallOutcome::kUnchanged;
  std::string version;
  std::optional<std::string> previous;  // nullopt: none before, or without a version
  std::string warning;                  // why the one before did not run; "": it ran, or there was none

  static void List(auto& f) {
    f("name", &InstalledProgram::name, {.column = "PROGRAM"});
    f("outcome", &InstalledProgram::outcome, {.column = "WHAT"});
    f("version", &InstalledProgram::version, {.column = "VERSION"});
    f("previous", &InstalledProgram::previous, {.column = "BEFORE"});
    f("warning", &InstalledProgram::warning, kSparseField);
  }
};

Result<std::vector<InstalledProgram>> InstallPrograms(const ProgramOrder& order);

}  // namespace railhead::install
