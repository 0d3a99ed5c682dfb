// NodeChange: the differences that one discovery has found, and their lines in the log.
// Threads: pure functions; as Log.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/snapshot/node_snapshot.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"

namespace railhead::discovery {

struct NodeChange {
  struct Devices {
    std::vector<std::string> added;  // ids, sorted
    std::vector<std::string> removed;
  };
  std::map<std::string, Devices> resources;  // by name; those that have changed
  std::optional<Error> error;                // the node could not be read: nothing has changed
  // Problems that do not stop the reading; each is reported once, and its end as `note`.
  struct Warning {
    std::string what;
    Error why;
  };
  std::vector<Warning> warnings;
  std::string note;
};

NodeChange Difference(const NodeSnapshot& before, const NodeSnapshot& now);

// Whether no device was added. The health of an added device must be checked first.
bool OnlyTakesAway(const NodeChange& change);

// The first reading.
void LogFirstReading(Log* log, const NodeSnapshot& node);
void LogNodeChange(Log* log, const NodeChange& change);

}  // namespace railhead::discovery
