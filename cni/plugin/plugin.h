// RailheadPlugin: the CNI commands, for one device or all devices of a pod per call.
//
// ADD: configuration -> devices -> acquire (locked, on the host, free) -> plan -> journal -> addresses. Then:
// kernel -> wait -> NCCL configuration -> journal done -> result. A failed ADD restores the devices before it
// returns. After a killed ADD, DEL, the next ADD of a device, GC or railheadd restores them. DEL changes a
// device only through the entry of its own network, container and interface name.
//
// Locks, always taken in this order: device, sandbox, RDMA.
// Threads: one object per process, one call.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/protocol/plugin.h"
#include "cni/state/journal.h"
#include "cni/state/phase_clock.h"
#include "netns/base/root.h"
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

  // The attachment of a successful ADD whose announcements main() has resent after it printed the result.
  [[nodiscard]] const std::optional<AttachmentKey>& announced() const { return announced_; }

 private:
  // ADD without its line in the log of attach timings. Sets `links` to the number of devices once it is
  // known.
  Result<std::string> Attach(const CniRequest& request, PhaseClock& clock, std::size_t& links);
  // The plan for the acquired devices. Resets devices that another tenant had.
  Result<AttachPlan> Plan(const AddCall& call, const PodNetwork& network, PhaseClock& clock);
  // Releases the attachment if it exists, under its devices' locks. `until`: deadline for locks and devices;
  // nullopt: a DEL's limits. false: it did not exist.
  Result<bool> Release(const CniRequest& request, const AttachmentKey& key,
                       std::optional<Deadline> until = std::nullopt);

  Root root_;
  Kernel& kernel_;
  Journal journal_;
  std::optional<AttachmentKey> announced_;
};

}  // namespace railhead::attachment
