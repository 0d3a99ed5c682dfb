// Log: one line per event on stderr, as a JSON object or, for people, as text:
//
//   {"time":"2026-01-02T03:04:05.678Z","level":"info","msg":"registered","resource":"railhead.io/roce"}
//   2026-01-02T03:04:05.678Z info registered resource=railhead.io/roce
//
// A message is the event. Fields have the same names everywhere: device, devices, rail, resource, pod
// (NAMESPACE/NAME), pod_uid, container_id, node, because (the reason), error, hint, code.
// Only the daemon logs; libraries return errors and report events.
// Threads: thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "netns/base/result.h"

namespace railhead {

enum class LogFormat : std::uint8_t { kJson, kText };

class Log {
 public:
  using Field = std::pair<std::string_view, std::string>;
  using Fields = std::initializer_list<Field>;

  // "debug", "info", "warning", "error"; anything else is "info".
  explicit Log(const std::string& level, LogFormat format = LogFormat::kJson);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void Debug(std::string_view message, Fields fields = {});
  void Info(std::string_view message, Fields fields = {});
  void Warning(std::string_view message, Fields fields = {});
  // With the error's message, hint and code as fields.
  void Warning(std::string_view message, const Error& error, Fields fields = {});
  void Failure(std::string_view message, const Error& error, Fields fields = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead
