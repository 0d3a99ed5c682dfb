// What the cluster is to hear of bad rails: fabric.json's object `isolation`.
//
// Threads: values. Errors: kInvalid and kMalformed with the JSON pointer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/node_status/disruption_budget.h"
#include "deviceplugin/support/kubernetes/kube_config.h"
#include "netns/base/result.h"

namespace railhead {

struct TaintSettings {
  std::string effect = "NoSchedule";
  std::optional<int> when_rails_below;  // nullopt: as many as the fabric has

  bool operator==(const TaintSettings&) const = default;
};

struct IsolationSettings {
  bool node_condition = false;
  std::optional<TaintSettings> taint;
  // "taint": false. Said, and not only left out: one that is there from before is taken away.
  bool no_taint = false;
  bool events = false;
  MaxUnavailable max_unavailable;
  KubeConfig kubernetes;

  // Whether the Kubernetes API is spoken to at all.
  [[nodiscard]] bool Any() const { return node_condition || taint || no_taint || events; }
  bool operator==(const IsolationSettings&) const = default;
};

// `text`: the object as JSON, "" when there is none; `what` names its file. `rails`: how many the fabric has.
// `all`: every mistake, not only the first.
Result<IsolationSettings> ParseIsolation(const std::string& text, const std::string& what, std::size_t rails,
                                         std::vector<Error>* all = nullptr);

}  // namespace railhead
