// A node with attachments on a fake kernel, and passes of the reconciler over it.
#pragma once

#include <chrono>
#include <string>

#include "deviceplugin/services/reconcile/reconciler.h"
#include "tests/support/plugin/rails_fixture.h"

namespace railhead::testing {

class ReconcilerFixture : public RailsFixture {
 protected:
  using Clock = reconcile::Reconciler::Clock;

  // An ADD to a new pod of that name, whose namespace is returned.
  std::string AddTo(const std::string& name, Call call);
  // Runs one pass by a new reconciler, like --reconcile-once.
  reconcile::ReconcileReport Once();
  // One line "what name: reason" per action; a failed one ends with "!" and the message.
  static std::string ListActions(const reconcile::ReconcileReport& report);
  // Once(), which has to succeed.
  std::string Did();

  // Passes that follow each other, killed at the nth call of the kernel. false: they finished before.
  bool KillPass(int nth, int passes = 1,
                const reconcile::ReconcileOptions& options = reconcile::SinglePass());

  [[nodiscard]] std::string Path(const std::string& path) const { return sysfs_.directory() + path; }
  [[nodiscard]] bool IsThere(const std::string& path) const;
  void Remove(const std::string& path) const;
  [[nodiscard]] std::string EntryOf(const Call& call) const;
  // Removes the call's journal file, so that its other files have no owner.
  void ForgetEntry(const Call& call) const;

  // A call with the pod UID that kubelet gives.
  [[nodiscard]] Call OfPod(const std::string& uid) const;
  void KubeletHas(const std::string& uid) const;
};

}  // namespace railhead::testing
