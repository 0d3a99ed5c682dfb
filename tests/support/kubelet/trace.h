// A recorded exchange between kubelet and a device plugin, as lines of JSON. README.md has the format.
// Threads: values. Errors: kMalformed with the line's number.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::testing {

struct TraceError {
  int code = 0;  // gRPC's
  std::string message;
};

struct TraceEvent {
  std::string from;  // "kubelet", "plugin", "node"
  std::string call;
  std::string resource;
  int plugin = 1;
  nlohmann::json request;   // null: none
  nlohmann::json response;  // null: none
  std::optional<TraceError> error;

  // "kubelet's Allocate of a.io/b"
  [[nodiscard]] std::string Title() const;
};

struct Trace {
  std::string kubelet;  // its version
  std::string scenario;
  std::vector<TraceEvent> events;
};

Result<Trace> ParseTrace(const std::string& text, const std::string& what);
Result<Trace> ReadTrace(const std::string& path);
std::string TraceAsText(const Trace& trace);

// Finds a field whose name other programs spell in several ways. nullptr when `object` has no such field.
const nlohmann::json* Field(const nlohmann::json& object, const std::string& name);
// The ids of a list of devices ("ID"), or of a list of texts.
std::vector<std::string> IdsIn(const nlohmann::json* list);

}  // namespace railhead::testing
