// The steps of one ADD between the plan and the result.
//
// Each method is one step; Add() in add.cc calls them in the order that RoCE
// forces: VF settings by the PF (MAC before the move), one message for namespace,
// name and MTU, no automatic IPv6 address, addresses while the link is down, link
// up, RDMA device, GID.
// Threads: as Kernel. Undoing is the caller's: BringHome() from the entry.
#pragma once

#include <memory>
#include <string>

#include "cni/plugin/plan.h"
#include "cni/plugin/routing.h"
#include "cni/skel/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

class Attachment {
 public:
  // Opens the sockets. kNamespace when the pod's namespace is gone, is none, or
  // is the host's.
  static Result<Attachment> Open(const Root& root, Kernel& kernel, const CniRequest& request);

  RouteApi& host() { return *host_; }
  RouteApi& pod() { return *pod_; }

  Result<void> RefuseTakenName();

  // The journal entry for the plan: what will be changed and what it was before.
  Result<JournalEntry> Describe(const AttachPlan& plan, const Addressing& addressing);

  Result<void> ConfigureVf(const AttachPlan& plan);
  Result<void> MoveIntoPod(const AttachPlan& plan);
  Result<void> ConfigureLink(const Addressing& addressing);
  Result<void> ConfigureRouting(const AttachedLink& link);
  Result<void> AwaitCarrier(const AttachPlan& plan, Deadline deadline);
  // Fills in what the handoff needs.
  Result<void> SetUpRdma(const Addressing& addressing, AttachedLink& link, Deadline deadline);
  Result<void> AnnounceAddresses(const Addressing& addressing);

  // The pod's link, after the move.
  [[nodiscard]] const Link& link() const { return link_; }
  [[nodiscard]] const NetNs& pod_ns() const { return pod_ns_; }

 private:
  Attachment(const Root& root, Kernel& kernel, const CniRequest& request, NetNs host_ns, NetNs pod_ns)
      : root_(&root),
        kernel_(&kernel),
        request_(&request),
        host_ns_(std::move(host_ns)),
        pod_ns_(std::move(pod_ns)) {}

  const Root* root_;
  Kernel* kernel_;
  const CniRequest* request_;
  NetNs host_ns_;
  NetNs pod_ns_;
  std::unique_ptr<RouteApi> host_;
  std::unique_ptr<RouteApi> pod_;
  int host_index_ = 0;  // of the device on the host; a rebind changes it
  Link link_;
};

}  // namespace railhead
