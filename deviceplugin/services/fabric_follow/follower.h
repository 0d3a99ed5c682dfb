// Follower: takes a changed fabric over while railheadd runs. A change restarts nothing.
//
// Another program keeps the wanted fabric.json, and optionally topology.json, in a directory: kubelet does so
// for a ConfigMap. Each pass compares them with the files in /etc/railhead, which all parts read. It replaces
// these by what the node may have now (compose.h). What waits for the end of pods is applied by the first
// pass after them. A fabric that is invalid, or that cannot be composed, changes nothing.
//
// A pass keeps no state between two passes but what it has reported. So a crash loses nothing: the next pass
// finds the same two fabrics and the journal. An ADD that has read the fabric before a pass, and writes the
// journal after it, keeps the former definition.
//
// Ownership: borrows the log. Threads: Step() and Run() on one, state() from any. Errors: none; failures are
// reported and retried.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deviceplugin/services/fabric_follow/compose.h"
#include "deviceplugin/services/fabric_follow/install_config.h"
#include "deviceplugin/support/log/log.h"
#include "deviceplugin/support/metrics/metric_registry.h"
#include "deviceplugin/support/service/once_per_change.h"
#include "deviceplugin/support/service/published.h"
#include "deviceplugin/support/service/service.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"
#include "netns/json/state_file.h"

namespace railhead::fabric_follow {

// What the latest pass found, for railctl.
struct FollowState {
  std::string file;                  // the wanted fabric
  std::vector<std::string> refused;  // why it is not in force, with JSON pointers; empty: it is
  std::vector<PendingChange> pending;

  bool operator==(const FollowState&) const = default;
};

inline constexpr StateFile<FollowState> kFollowFile{
    .path = "/run/railhead/fabric-follow.json",
    .what = "saving which changes of the fabric wait",
    .writer = "railheadd writes it when it runs with --follow-config",
};

class Follower : public Service {
 public:
  // `directory`: of the wanted files; an absolute path. "": nothing is followed.
  Follower(Root root, std::string directory, Log* log);

  // One pass.
  void Step();

  [[nodiscard]] std::string_view name() const override { return "fabric_follow"; }
  void Register(MetricRegistry& metrics) override;
  // Passes.
  Result<void> Run(Worker& worker) override;

  // As of the latest pass; nullopt: none so far.
  [[nodiscard]] const Published<std::optional<FollowState>>& state() const { return state_; }
  // Why the wanted fabric is not in force; "": it is, or it was not checked yet.
  [[nodiscard]] const Published<std::string>& refused() const { return refused_; }

 private:
  // What a pass reads. The same files have the same outcome, unless pods' ends are awaited.
  struct Texts {
    std::optional<std::string> wanted_fabric;
    std::optional<std::string> wanted_topology;
    std::optional<std::string> fabric;
    std::optional<std::string> topology;

    bool operator==(const Texts&) const = default;
    // Of a fabric without groups of nodes.
    [[nodiscard]] bool Same() const {
      return wanted_fabric && wanted_fabric == fabric && (!wanted_topology || wanted_topology == topology);
    }
  };

  [[nodiscard]] Result<Texts> ReadTexts() const;
  // What is wanted, read again where one of the texts has changed: a fabric of a large cluster takes a while.
  Result<const WantedConfig*> Wanted(const Texts& texts);
  Result<FollowState> Take();
  void Report(const FollowState& now);

  const Root root_;
  const std::string directory_;
  Log* const log_;
  std::optional<Texts> decided_;  // by these files alone
  std::optional<WantedConfig> wanted_;
  Texts wanted_texts_;  // `wanted_` is of these
  OncePerChange problem_;
  bool unsaved_ = false;
  Published<std::optional<FollowState>> state_;
  Published<std::string> refused_;
};

}  // namespace railhead::fabric_follow

template <>
struct railhead::Shape<railhead::fabric_follow::FollowState> {
  using State = fabric_follow::FollowState;
  static void List(auto& f) {
    f.Version(1);
    f("file", &State::file, kRequiredField);
    f("refused", &State::refused);
    f("pending", &State::pending);
  }
};
