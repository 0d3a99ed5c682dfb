// fabric.json whole: with the objects that parts of railheadd read, and the fabric keeps as text.
//
// A new one is named here: what is wrong with it, and its schema. Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::railctl {

// All that is wrong with it by itself, on whatever node it is. `what` names the text in errors, which have
// JSON pointers.
std::vector<Error> ErrorsInFabric(const std::string& text, const std::string& what);

// What `railctl config schema fabric` prints, and packages install.
nlohmann::ordered_json FabricSchema();

}  // namespace railhead::railctl
