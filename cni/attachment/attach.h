// The steps of one ADD that change the kernel, for all devices of the attachment.
//
// Each method is one step, for one device after the other. In add.cc they follow the order that RoCE
// requires. VF settings through the PF come first (MAC before the move). One message then sets namespace,
// name and MTU. Addresses come while the link is down, without an automatic IPv6 address. Link up, RDMA
// device and GID follow. A step that waits starts its work on all devices before it waits for the first.
// Ownership: borrows all. Steps add what they learn to the journal entry. Threads: as Kernel. The caller
// undoes the steps with ReleaseAttachment().
#pragma once

#include <vector>

#include "cni/attachment/attach_plan.h"
#include "cni/attachment/pod_network.h"
#include "cni/attachment/routing.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

class Attachment {
 public:
  // All three have the same devices in the same order.
  Attachment(const Root& root, Kernel& kernel, PodNetwork& network, const AttachPlan& plan,
             const std::vector<Addressing>& addressing, JournalEntry& entry);

  Result<void> ConfigureVfs();
  Result<void> MoveIntoPod();
  // kBusy when interfaces of another pod are stacked on a device, in whatever namespace. must_reset() then
  // says so, and the devices' records do.
  Result<void> RefuseUppers();
  [[nodiscard]] bool must_reset() const { return must_reset_; }
  Result<void> ConfigureLinks();
  Result<void> BringUp();
  Result<void> AwaitCarrier(Deadline deadline);
  // kConflict when another host uses one of the addresses. in_use() then lists all of them.
  Result<void> RefuseConflicts();
  [[nodiscard]] const std::vector<IpAddress>& in_use() const { return in_use_; }
  [[nodiscard]] const std::vector<IpAddress>& confirmed_in_use() const { return confirmed_in_use_; }
  Result<void> Announce();
  // Has the kernel resolve the gateways. Waits for their answers if the plan requires gateways.
  Result<void> ResolveGateways(Deadline deadline);
  // Fills in what the NCCL configuration needs.
  Result<void> SetUpRdma(Deadline deadline);

  // Explains a step that failed because a device was unbound, removed or bound again: one code for all steps
  // (WithLostDevice). Call it before anything is undone.
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

  // The answers that are conflicts. Logs all answers.
  [[nodiscard]] Result<std::vector<AddressConflict>> Judge(const std::vector<AddressConflict>& found);
  [[nodiscard]] const Work& WorkOf(const ProbeTarget& target) const;
  [[nodiscard]] bool Probes() const { return plan_.conflict_probe_ms > 0; }
  Result<void> ConfigureVf(Work& work);
  [[nodiscard]] Result<void> SetVf(const Work& work, const VfSettings& settings) const;
  Result<void> SetMac(Work& work);
  Result<void> Move(Work& work) const;
  [[nodiscard]] Result<std::string> NameOfHostOnly() const;
  Result<void> ConfigureLink(const Work& work);
  [[nodiscard]] Result<void> AddAddress(const Work& work, const IpPrefix& address) const;
  [[nodiscard]] Result<void> AddRouting(const Work& work) const;
  [[nodiscard]] Result<void> AwaitGateway(const Work& work, const IpAddress& gateway,
                                          Deadline deadline) const;
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
  bool must_reset_ = false;
  std::vector<IpAddress> in_use_;            // by other hosts
  std::vector<IpAddress> confirmed_in_use_;  // of those, also found in use by an earlier ADD
};

}  // namespace railhead::attachment
