// Event: what the registrar and its servers report, and its line in the log.
// Threads: values; as Log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/support/log/log.h"
#include "netns/base/result.h"

namespace railhead::kubelet {

enum class EventKind : std::uint8_t {
  kServing,         // detail: the socket's path
  kRegistered,      // detail: kubelet's socket
  kRegisterFailed,  // error; repeated only when it changes
  kServeFailed,     // error
  kKubeletGone,     // kubelet dropped the resource; detail: why we think so
  kStandby,         // detail: the newer server's socket
  kCall,            // a call of kubelet's; error when it was refused
};

struct Event {
  EventKind kind;
  std::string resource;
  std::string detail;
  std::vector<std::string> device_ids;
  std::optional<Error> error;
  std::vector<std::string> rewritten;  // CallReport::rewritten
  bool cdi_unread = false;             // CallReport::cdi_unread
};

void LogEvent(Log* log, const Event& event);

}  // namespace railhead::kubelet
