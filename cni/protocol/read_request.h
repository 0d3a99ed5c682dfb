// Reading and checking one CNI call (for RunCniPlugin() and its tests).
// Threads: pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/cni_request.h"
#include "netns/base/result.h"

namespace railhead {

// getenv, or a table in tests.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// A failure that has a CNI code of its own (1, 4) instead of its Error's code.
struct CniFailure {
  int code = 0;
  Error error;
};

// Reads command and environment, not the configuration.
tl::expected<CniRequest, CniFailure> ReadEnvironment(const Environment& environment);

// Reads name and version from the configuration; for VERSION only the version.
tl::expected<void, CniFailure> ReadConfiguration(const std::string& config, CniRequest& request);

// The list of a GC call, "cni.dev/valid-attachments". Errors: kInvalid with the JSON pointer if the list is
// missing or null, or if an entry is not an attachment. An unreadable list must never look like an empty one.
Result<std::vector<ValidAttachment>> ReadValidAttachments(const std::string& config);

}  // namespace railhead
