// Configurations whole: fabric.json with the objects that parts of railheadd read and the fabric keeps as
// text, and network configurations with what railhead-ipam reads of them.
//
// A new object is named here: what is wrong with it, and its schema. Threads: pure functions.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::railctl {

// All that is wrong with it by itself, on whatever node it is. `what` names the text in errors, which have
// JSON pointers.
std::vector<Error> ErrorsInFabric(const std::string& text, const std::string& what);

// By WHAT, what makes that which `railctl config schema WHAT` prints, and packages install.
std::map<std::string, nlohmann::ordered_json (*)()> Schemas();

}  // namespace railhead::railctl
