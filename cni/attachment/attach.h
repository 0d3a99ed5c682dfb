// The steps of one ADD that change the kernel, for all devices of the attachment.
//
// Each method is one step, for one device after the other; Add() in add.cc calls them
// in the order that RoCE forces: VF settings by the PF (MAC before the move), one
// message for namespace, name and MTU, no automatic IPv6 address, addresses while
// the link is down, link up, RDMA device, GID. What is waited for is begun on all
// devices before it is waited for on the first.
// Ownership: borrows all; the journal entry is filled in where a step learns
// something. Threads: as Kernel. Undoing is the caller's: ReleaseAttachment().
#pragma once

#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/routing.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// kExists when the pod has an interface of one of the plan's names already.
Result<void> RefuseTakenNames(PodNetwork& network, const AttachPlan& plan);

class Attachment {
 public:
  // All three have the same devices in the same order.
  Attachment(const Root& root, Kernel& kernel, PodNetwork& network, const AttachPlan& plan,
             const std::vector<Addressing>& addressing, JournalEntry& entry);

  Result<void> ConfigureVfs();
  Result<void> MoveIntoPod();
  Result<void> ConfigureLinks();
  Result<void> BringUp();
  Result<void> AwaitCarrier(Deadline deadline);
  // kConflict when someone else uses one of the addresses; in_use() has them all then.
  Result<void> RefuseConflicts();
  [[nodiscard]] const std::vector<IpAddress>& in_use() const { return in_use_; }
  [[nodiscard]] const std::vector<IpAddress>& confirmed_in_use() const { return confirmed_in_use_; }
  Result<void> Announce();
  // Has the kernel resolve the gateways, and waits for them where that is asked for.
  Result<void> MeetGateways(Deadline deadline);
  // Fills in what the handoff needs.
  Result<void> SetUpRdma(Deadline deadline);

  // What a step answers that failed because a device was unbound or removed meanwhile, or bound anew: one
  // code for all steps (WithLostDevice). Call it before anything is undone.
  [[nodiscard]] Error Explain(Error error) const;

  // The pod's side of device `index`, after the move; of a user-space device empty.
  [[nodiscard]] const Link& pod_link(std::size_t index) const { return work_[index].pod_link; }

 private:
  struct Work {
    const DevicePlan* plan;
    const Addressing* addressing;
    AttachedDevice* device;
    int host_index;  // of the device on the host; a rebind changes it
    Link pod_link;
  };

  // What was found in use; the log has all of it then.
  [[nodiscard]] Result<std::vector<AddressConflict>> Judge(const std::vector<AddressConflict>& found);
  [[nodiscard]] const Work& WorkOf(const AddressClaim& claim) const;
  [[nodiscard]] bool Probes() const { return plan_.conflict_probe_ms > 0; }
  Result<void> ConfigureVf(Work& work);
  Result<void> SetMac(Work& work);
  Result<void> Move(Work& work) const;
  Result<void> ConfigureLink(const Work& work);
  [[nodiscard]] Result<void> AddRouting(const Work& work) const;
  [[nodiscard]] Result<void> MeetGateway(const Work& work, const IpAddress& gateway, Deadline deadline) const;
  [[nodiscard]] Result<void> AwaitCarrierOf(const Work& work, Deadline deadline) const;
  // Those that have a netdev: all but those of user-space drivers.
  std::vector<Work*> Netdevs();
  [[nodiscard]] bool IsPodName(const std::string& name) const;

  const Root& root_;
  Kernel& kernel_;
  PodNetwork& network_;
  const AttachPlan& plan_;
  const AttachmentKey key_;
  std::vector<Work> work_;
  std::vector<IpAddress> in_use_;            // by others
  std::vector<IpAddress> confirmed_in_use_;  // of those, found again after a while
};

}  // namespace railhead::attachment
