// RailheadPlugin: ADD, DEL and CHECK of one device per call.
//
// ADD: configuration -> lock of the device -> plan -> addresses -> journal ->
// kernel -> wait -> handoff -> journal done -> result. What fails is undone in
// reverse order before ADD returns; what is killed is undone by DEL or by the
// next ADD of the device. DEL touches a device only through the entry of its own
// network, container and interface name.
//
// Locks, always taken in this order: device, sandbox, RDMA.
// Threads: one object per process, one call.
#pragma once

#include <vector>

#include "cni/skel/plugin.h"
#include "cni/state/journal.h"
#include "netns/base/file_lock.h"
#include "netns/base/root.h"
#include "netns/kernel.h"

namespace railhead {

class RailheadPlugin : public CniPlugin {
 public:
  RailheadPlugin(Root root, Kernel& kernel) : root_(std::move(root)), kernel_(kernel), journal_(root_) {}

  Result<std::string> Add(const CniRequest& request) override;
  Result<void> Del(const CniRequest& request) override;
  Result<void> Check(const CniRequest& request) override;
  Result<void> Gc(const CniRequest& request, const std::vector<ValidAttachment>& valid) override;
  Result<void> Status(const CniRequest& request) override;

 private:
  // Finishes what an earlier attachment of the device left behind: one that was
  // killed, or whose pod's namespace died without DEL. kBusy when it is alive.
  Result<void> FinishEarlier(const CniRequest& request, const std::string& device);

  Root root_;
  Kernel& kernel_;
  Journal journal_;
};

}  // namespace railhead
