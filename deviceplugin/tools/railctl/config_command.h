// All that is wrong with a configuration by itself, on whatever node it is.
// Threads: pure functions. `what` names the text in errors, which have JSON pointers.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::railctl {

// fabric.json with its objects "health" and "provision".
std::vector<Error> ErrorsInFabric(const std::string& text, const std::string& what);

// Tells them: one by one as Complain() does, and with `json` as {"ok": false, "error": the first of
// "errors"} on standard output. Returns `status`. Needs one at least.
int Refuse(const std::vector<Error>& errors, bool json, int status);

}  // namespace railhead::railctl
