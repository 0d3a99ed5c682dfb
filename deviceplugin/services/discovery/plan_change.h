// PlanChange: the differences that one discovery has found, and their lines in the log.
// Threads: pure functions; as Log.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/plan.h"
#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"

namespace railhead::discovery {

struct PlanChange {
  struct Devices {
    std::vector<std::string> added;  // ids, sorted
    std::vector<std::string> removed;
  };
  std::map<std::string, Devices> resources;  // by name; those that have changed
  std::optional<Error> error;                // the plan could not be made: nothing has changed
  // Problems that do not stop the plan; each is reported once, and its end as `note`.
  struct Warning {
    std::string what;
    Error why;
  };
  std::vector<Warning> warnings;
  std::string note;
};

PlanChange Difference(const resources::Plan& before, const resources::Plan& now);

// Whether no device was added. The health of an added device must be checked first.
bool OnlyTakesAway(const PlanChange& change);

// The first plan.
void LogPlan(Log* log, const resources::Plan& plan);
void LogPlanChange(Log* log, const PlanChange& change);

}  // namespace railhead::discovery
