// What railheadd reports to the cluster: fabric.json's object `nodeStatus`.
//
// Threads: values. Errors: kInvalid and kMalformed with the JSON pointer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/support/kubernetes/kube_access.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::node_status {

// As Kubernetes has them, but for NoExecute: pods that run are never evicted.
enum class TaintEffect : std::uint8_t { kNoSchedule, kPreferNoSchedule };

struct TaintSettings {
  bool wanted = true;  // false: railheadd removes a taint that is there
  TaintEffect effect = TaintEffect::kNoSchedule;
  std::optional<int> when_rails_below;  // nullopt: as many as the fabric has

  bool operator==(const TaintSettings&) const = default;
};

struct NodeStatusSettings {
  bool node_condition = false;
  std::optional<TaintSettings> taint;
  bool events = false;
  KubeConfig kubernetes;

  // Whether the Kubernetes API is used at all.
  [[nodiscard]] bool Any() const { return node_condition || taint || events; }
  bool operator==(const NodeStatusSettings&) const = default;
};

}  // namespace railhead::node_status

template <>
struct railhead::Names<railhead::node_status::TaintEffect> {
  using enum node_status::TaintEffect;
  static constexpr std::array kAll = {std::pair{"NoSchedule", kNoSchedule},
                                      std::pair{"PreferNoSchedule", kPreferNoSchedule}};
};

template <>
struct railhead::Shape<railhead::node_status::TaintSettings> {
  using T = node_status::TaintSettings;
  static void Switch(T& taint, bool on) { taint.wanted = on; }
  static void List(auto& f) {
    f("effect", &T::effect);
    f("whenRailsBelow", &T::when_rails_below, {.min = 1, .max = 256});  // a rail is one of 256 PFs
  }
};

template <>
struct railhead::Shape<railhead::node_status::NodeStatusSettings> {
  using T = node_status::NodeStatusSettings;
  static void List(auto& f) {
    f("nodeCondition", &T::node_condition);
    f("taint", &T::taint);
    f("events", &T::events);
    f("kubernetes", &T::kubernetes);
    f.Gone("maxUnavailable", "remove it: the taint follows this node's own faults only");
  }
};

namespace railhead::node_status {

// `text`: the object as JSON, "" without one; `what` names its file. `rails`: how many the fabric has. `all`:
// every mistake, not only the first.
Result<NodeStatusSettings> ParseNodeStatusSettings(const std::string& text, const std::string& what,
                                                   std::size_t rails, std::vector<Error>* all = nullptr);

}  // namespace railhead::node_status
