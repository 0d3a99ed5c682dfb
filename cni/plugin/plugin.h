// RailheadPlugin: the CNI verbs, for one device or all devices of a pod per call.
//
// ADD: configuration -> devices -> claim (locked, home, free) -> plan -> journal ->
// addresses -> kernel -> wait -> handoff -> journal done -> result. What fails is
// undone before ADD returns; what is killed is undone by DEL, by the next ADD of a
// device, by GC or by railheadd. DEL touches a device only through the entry of its
// own network, container and interface name.
//
// Locks, always taken in this order: device, sandbox, RDMA.
// Threads: one object per process, one call.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/protocol/plugin.h"
#include "cni/state/attach_log.h"
#include "cni/state/journal.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/kernel.h"

namespace railhead::attachment {

class RailheadPlugin : public CniPlugin {
 public:
  RailheadPlugin(Root root, Kernel& kernel) : root_(std::move(root)), kernel_(kernel), journal_(root_) {}

  Result<std::string> Add(const CniRequest& request) override;
  Result<void> Del(const CniRequest& request) override;
  Result<void> Check(const CniRequest& request) override;
  Result<void> Gc(const CniRequest& request, const std::vector<ValidAttachment>& valid) override;
  Result<void> Status(const CniRequest& request) override;

  // What a successful ADD has announced, which is to be repeated after its
  // result was printed.
  [[nodiscard]] const std::optional<AttachmentKey>& announced() const { return announced_; }

 private:
  // What ADD will do with the devices that it has claimed, made anew where they come from another tenant.
  Result<AttachPlan> Plan(const AddCall& call, const PodNetwork& network, PhaseClock& clock);
  // Ends the attachment if there is one, under its devices' locks. `until`: for waiting, both for locks and
  // for devices; nullopt: as long as a DEL waits.
  Result<bool> Release(const CniRequest& request, const AttachmentKey& key,
                       std::optional<Deadline> until = std::nullopt);

  Root root_;
  Kernel& kernel_;
  Journal journal_;
  std::optional<AttachmentKey> announced_;
};

}  // namespace railhead::attachment
