// The fabric that a node may have now: the wanted one, but for what its running pods would notice.
//
// A rail of which a pod has a device is busy. A busy rail keeps its present definition as a whole while the
// wanted one differs in a key that a pod has in its devices. So no rail mixes two definitions, and no two
// pods of one rail differ. A busy rail that the wanted fabric lacks stays. All others are as wanted: changed,
// added or removed. A busy rail whose subnet other indices divide from now on keeps the node's index, too:
// the node gets another one for the rails that are free. `rdmaMode` stays while any rail is busy. `device`
// and `binding` of a pool stay while one of its rails is busy: kubelet knows the pods' devices by ids that
// follow from them.
//
// Without a busy rail the result is the wanted text itself. A second composition changes nothing.
// Threads: pure functions over texts. Errors: those of reading the fabrics; kConflict when a rail would get
// the PF of a busy one, or when the others do not fit the busy ones. The caller then keeps the present fabric
// as a whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::fabric_follow {

// Keys of a pool that change the ids under which kubelet knows its devices.
bool ChangesIds(const std::string& key);
// "NAMESPACE/NAME" of the pod, else "container ID".
std::string HolderName(const std::string& pod, const std::string& container);

// Which rails pods have devices of.
struct RailUse {
  std::map<std::string, std::set<std::string>> pods;  // by rail
  // Attachments that cannot be read: each may be of any rail.
  std::set<std::string> unreadable;
  std::optional<int> index;  // the node's, by which the pods have their addresses; nullopt: it has none

  // Of the rail; empty: it is free.
  [[nodiscard]] std::set<std::string> Of(const std::string& rail) const;
};
// Resets between two pods do not count: they end by themselves, and need no fabric.
RailUse RailsInUse(const JournalScan& scan);

enum class PendingKind : std::uint8_t { kRail, kRdmaMode, kPool };
enum class PendingWord : std::uint8_t { kChanged, kRemoved };

// A part of the fabric that stays as it is until pods have ended.
struct PendingChange {
  PendingKind kind = PendingKind::kRail;
  std::string name;  // of the rail or the pool's resource; "rdmaMode"
  PendingWord change = PendingWord::kChanged;
  std::set<std::string> rails;  // that are busy
  std::set<std::string> pods;   // that have them

  bool operator==(const PendingChange&) const = default;
};

// "rail3 is in use by 2 pods", "rail3 is in use by 1 pod, the unreadable attachment c1/rails@net1"
std::string TextOf(const PendingChange& change);
// All rails that have to be drained for these changes.
std::set<std::string> RailsOf(const std::vector<PendingChange>& changes);

// An error of the wanted fabric together with what stays: it ends when those rails are free.
Error ConflictWithUse(Error error, const std::set<std::string>& rails);

struct Composition {
  std::string text;
  std::vector<PendingChange> pending;  // rails first, in the present fabric's order
};

// The PFs that a rail names: the same for a netdev's name, its PCI address and its position.
using PfsOf = std::function<std::vector<std::string>(const Rail& rail)>;
// Each name and each position is a PF of its own.
std::vector<std::string> PfsAsWritten(const Rail& rail);

// Whether the rails differ in a key that pods have in their devices. `states_table`: `after` is written with
// a table. One that it gets by its place is no change: a running pod has it in its own network namespace
// only.
bool ChangesDevices(const Rail& before, const Rail& after, bool states_table, const PfsOf& pfs_of);

// `present` and `wanted`: the texts of two valid fabrics.
Result<Composition> Compose(const std::string& present, const std::string& wanted, const RailUse& use,
                            const PfsOf& pfs_of = PfsAsWritten);

}  // namespace railhead::fabric_follow

template <>
struct railhead::Names<railhead::fabric_follow::PendingKind> {
  using enum fabric_follow::PendingKind;
  static constexpr std::array kAll = {std::pair{"rail", kRail}, std::pair{"rdmaMode", kRdmaMode},
                                      std::pair{"pool", kPool}};
};

template <>
struct railhead::Names<railhead::fabric_follow::PendingWord> {
  using enum fabric_follow::PendingWord;
  static constexpr std::array kAll = {std::pair{"changed", kChanged}, std::pair{"removed", kRemoved}};
};

template <>
struct railhead::Shape<railhead::fabric_follow::PendingChange> {
  using Change = fabric_follow::PendingChange;
  static void List(auto& f) {
    f("kind", &Change::kind, {.need = Need::kRequired, .column = "KIND"});
    f("name", &Change::name, {.need = Need::kRequired, .column = "NAME"});
    f("change", &Change::change, {.need = Need::kRequired, .column = "CHANGE"});
    f("rails", &Change::rails, {.column = "RAILS"});
    f("pods", &Change::pods, {.column = "PODS"});
  }
};
