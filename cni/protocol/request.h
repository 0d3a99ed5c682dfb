// Reading and checking one CNI call (internal to skel and its tests).
// Threads: pure functions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cni/protocol/plugin.h"
#include "netns/base/result.h"

namespace railhead {

// getenv, or a table in tests.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// A failure that has its own CNI code (1, 4) rather than the one that follows
// from its Error.
struct CniFailure {
  int code = 0;
  Error error;
};

// Reads command and environment. The configuration is not looked at yet.
tl::expected<CniRequest, CniFailure> ReadEnvironment(const Environment& environment);

// Takes name and version out of the configuration; for VERSION only the latter.
tl::expected<void, CniFailure> ReadConfiguration(const std::string& config, CniRequest& request);

// The list of a GC call, "cni.dev/valid-attachments". kInvalid with the JSON
// pointer when it is not there (null included) or an entry is no attachment: what
// cannot be read must never look like "none is valid".
Result<std::vector<ValidAttachment>> ReadValidAttachments(const std::string& config);

// Whose pod it is: what Kubernetes' runtimes say in CNI_ARGS.
// Threads: pure functions. All are "" where the runtime did not say.

using CniArgs = std::map<std::string, std::string>;

// "namespace/name"
std::string PodName(const CniArgs& args);
std::string PodNamespace(const CniArgs& args);
std::string PodUid(const CniArgs& args);

}  // namespace railhead
