// Brings the VFs of this node's PFs to the state that fabric.json requires.
//
// Planning changes nothing. Applying carries out the plans that are not refused, PF by PF. If one PF fails,
// the others go on. Only one process does it at a time. It holds the device locks of the PF and its VFs, so
// no ADD or DEL runs on them. During that time kubelet may allocate a VF (Allocate takes no locks): the VF
// has the same address afterwards.
// Threads: as Kernel. Errors: only where the node could not be asked. A PF's own error is in its plan or
// outcome.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/provision/apply_watch.h"
#include "deviceplugin/services/provision/pf_plan.h"
#include "deviceplugin/services/provision/provision_settings.h"
#include "deviceplugin/services/provision/vf_control.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead::provision {

// From writing sriov_numvfs to the last netdev; a firmware may take a second for ten VFs.
inline constexpr std::chrono::seconds kProvisionLimit{180};

struct Provision {
  Fabric fabric;
  ProvisionSettings settings;
};

// Of the fabric at `path`. nullopt: the file does not exist, or has no "provision".
Result<std::optional<Provision>> ReadProvision(const Root& root, const std::string& path = kFabricPath);

struct VfsPlan {
  std::vector<PfPlan> pfs;                // in the order of the rails
  std::vector<std::string> absent_rails;  // this node has no PF for them

  [[nodiscard]] bool NothingToDo() const;
  [[nodiscard]] bool Refused() const;  // at least one

  static void List(auto& f) {
    f.Output("nothingToDo", &VfsPlan::NothingToDo);
    f.Output("refused", &VfsPlan::Refused);
    f("pfs", &VfsPlan::pfs);
    f("absentRails", &VfsPlan::absent_rails);
  }
};

// `only`: of one rail; kNotFound when the fabric has no such rail.
Result<VfsPlan> PlanVfs(const Root& root, Kernel& kernel, const Provision& provision,
                        const std::optional<std::string>& only = std::nullopt);

struct PfOutcome {
  PfPlan plan;                 // as it was carried out
  std::optional<Error> error;  // refused, or failed
  [[nodiscard]] bool Changed() const { return !error && !plan.NothingToDo(); }

  static void List(auto& f) {
    f.Part(&PfOutcome::plan, [](auto& part) { PfPlan::ListOfPf(part); });
    f.Output("changed", &PfOutcome::Changed);
    f("error", &PfOutcome::error, kNullField);
  }
};

struct VfsOutcome {
  std::vector<PfOutcome> pfs;  // without the PFs after a stop
  std::vector<std::string> absent_rails;

  [[nodiscard]] bool Failed() const;  // at least one

  static void List(auto& f) {
    f.Output("ok", [](const VfsOutcome& outcome) { return !outcome.Failed(); });
    f("pfs", &VfsOutcome::pfs);
    f("absentRails", &VfsOutcome::absent_rails);
  }
};

Result<VfsOutcome> ApplyVfs(const Root& root, Kernel& kernel, VfControl& control, const Provision& provision,
                            const std::optional<std::string>& only = std::nullopt,
                            std::chrono::milliseconds limit = kProvisionLimit, const ApplyWatch& watch = {});

}  // namespace railhead::provision
