// A HealthEvent as the Kubernetes API wants it: core/v1 Event.
//
// Threads: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "deviceplugin/services/node_status/health_events.h"

namespace railhead::node_status {

// The namespace of events about a node, which has none itself.
inline constexpr const char* kNodeEventsNamespace = "default";

std::string NamespaceOf(const HealthEvent& event);

// `unique` goes into the object's name and must be another one for every event of an object.
std::string EventObject(const HealthEvent& event, const std::string& node,
                        std::chrono::system_clock::time_point time, std::uint64_t unique);

}  // namespace railhead::node_status
