// ReconcileReport: what one pass of the reconciler did and saw. Threads: a value.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cni/state/conflict_log.h"
#include "deviceplugin/services/reconcile/address_facts.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::reconcile {

struct ReconcileAction {
  std::string what;    // "attachment", "cdi-spec", "address", ...
  std::string name;    // which one
  std::string reason;  // why it must be ended
  std::optional<Error> error;

  static void List(auto& f) {
    f("what", &ReconcileAction::what);
    f("name", &ReconcileAction::name);
    f("reason", &ReconcileAction::reason);
    f.Part(&ReconcileAction::error, [](auto& part) {
      part("error", &Error::message);
      part.Output("code", [](const Error& one) { return NameOf(one.code); });
      part("hint", &Error::hint, kSparseField);
    });
  }
};

struct ReconcileReport {
  std::size_t attachments = 0;  // of this boot, when the pass began
  std::size_t unreadable = 0;   // entries of the journal
  std::size_t displaced = 0;    // devices under substitute names at the end of the pass
  bool unfinished = false;      // an ended attachment is left to a pass soon
  std::vector<ReconcileAction> actions;
  // nullopt: they could not be read. The actions have the error.
  std::optional<AddressFacts> addresses;
  // By sources that ADDs ignored since the pass before.
  std::vector<ConflictSource> conflict_sources;

  [[nodiscard]] bool Failed() const;

  static void List(auto& f) {
    f("attachments", &ReconcileReport::attachments);
    f("actions", &ReconcileReport::actions);
  }
};

}  // namespace railhead::reconcile
