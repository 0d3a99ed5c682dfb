#include "deviceplugin/services/node_status/event_object.h"

#include <array>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>

#include "netns/base/text.h"

namespace railhead::node_status {
namespace {

constexpr const char* kComponent = "railheadd";
// With the suffix the name is a DNS subdomain of at most 253 characters.
constexpr std::size_t kMostName = 236;

std::string ObjectName(const std::string& of, std::uint64_t unique) {
  std::array<char, 20> suffix{};
  (void)std::snprintf(suffix.data(), suffix.size(), "%016llx", static_cast<unsigned long long>(unique));
  return of.substr(0, kMostName) + "." + suffix.data();
}

}  // namespace

std::string NamespaceOf(const HealthEvent& event) {
  return event.pod.empty() ? kNodeEventsNamespace : event.pod_namespace;
}

std::string EventObject(const HealthEvent& event, const std::string& node,
                        std::chrono::system_clock::time_point time, std::uint64_t unique) {
  nlohmann::json involved = {{"apiVersion", "v1"}};
  if (event.pod.empty()) {
    // As in kubelet's events: the node's uid is its name, and kubectl searches for that.
    involved.update({{"kind", "Node"}, {"name", node}, {"uid", node}});
  } else {
    involved.update({{"kind", "Pod"}, {"namespace", event.pod_namespace}, {"name", event.pod}});
    if (!event.uid.empty()) involved["uid"] = event.uid;
  }
  const std::string at = FormatTime(time);
  const nlohmann::json object = {{"apiVersion", "v1"},
                                 {"kind", "Event"},
                                 {"metadata",
                                  {{"name", ObjectName(event.pod.empty() ? node : event.pod, unique)},
                                   {"namespace", NamespaceOf(event)}}},
                                 {"involvedObject", involved},
                                 {"reason", event.reason},
                                 {"message", event.message},
                                 {"type", event.warning ? "Warning" : "Normal"},
                                 {"count", 1},
                                 {"firstTimestamp", at},
                                 {"lastTimestamp", at},
                                 {"source", {{"component", kComponent}, {"host", node}}},
                                 {"reportingComponent", kComponent},
                                 {"reportingInstance", node}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace railhead::node_status
