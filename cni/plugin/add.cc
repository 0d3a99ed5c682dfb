#include <chrono>

#include "cni/plugin/attach.h"
#include "cni/plugin/handoff_step.h"
#include "cni/plugin/home.h"
#include "cni/plugin/ipam_step.h"
#include "cni/plugin/locks.h"
#include "cni/plugin/plugin.h"
#include "cni/skel/result.h"
#include "netns/base/undo_stack.h"

namespace railhead {
namespace {

// What the runtime and the next plugin of the chain are told: the result of the
// plugins before us, and ours.
Result<CniResult> ResultOf(const CniRequest& request, const AttachPlan& plan, const Addressing& addressing,
                           const Link& link) {
  CniResult result;
  if (!plan.config.prev_result.empty())
    result = RH_TRY(ParseCniResult(plan.config.prev_result, "prevResult"));
  const int index = static_cast<int>(result.interfaces.size());
  result.interfaces.push_back({link.name, link.mac.ToString(), request.netns, link.mtu, plan.bdf});
  for (std::size_t i = 0; i < addressing.addresses.size(); ++i) {
    result.ips.push_back({addressing.addresses[i], addressing.gateways[i], index});
  }
  for (const auto& route : addressing.routes) {
    CniRoute shown;
    shown.destination = route.destination;
    shown.gateway = route.gateway;
    if (route.table) shown.table = static_cast<int>(*route.table);
    if (route.metric) shown.priority = static_cast<int>(*route.metric);
    result.routes.push_back(shown);
  }
  if (!addressing.dns.empty()) result.dns = addressing.dns;
  return result;
}

// An undo that failed leaves something for DEL; the runtime should know what.
Error WithUndoErrors(Error error, const std::vector<Error>& undo_errors) {
  for (const auto& undo : undo_errors) {
    if (!error.hint.empty()) error.hint += "; ";
    error.hint += Describe(undo) + "; DEL will finish this";
  }
  return error;
}

// From the plan to the attached device; every change has its inverse on `undo`.
class Adding {
 public:
  Adding(const Root& root, Kernel& kernel, const Journal& journal, const CniRequest& request, int lock_fd,
         UndoStack& undo)
      : root_(root), kernel_(kernel), journal_(journal), request_(request), lock_fd_(lock_fd), undo_(undo) {}

  Result<CniResult> Run(Attachment& attachment, const AttachPlan& plan) {
    const Addressing addressing = RH_TRY(Allocate(plan));
    JournalEntry entry = RH_TRY(attachment.Describe(plan, addressing));
    RH_TRY_WRAP(Begin(entry), "writing the journal");
    RH_TRY(attachment.ConfigureVf(plan));
    RH_TRY(attachment.MoveIntoPod(plan));
    RH_TRY(attachment.ConfigureLink(addressing));
    RH_TRY(attachment.ConfigureRouting(entry.links.front()));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(plan.config.wait_seconds);
    RH_TRY(attachment.AwaitCarrier(plan, deadline));
    if (plan.config.announce) RH_TRY(attachment.AnnounceAddresses(addressing));
    RH_TRY(attachment.SetUpRdma(addressing, entry.links.front(), deadline));
    if (plan.handoff_required && !entry.links.front().gid_index) {
      return Fail(ErrorCode::kInvalid, "a handoff is required, but " + plan.bdf + " got no address",
                  "configure an IPAM plugin, or \"handoff\": \"off\"");
    }
    RH_TRY(FinishWithHandoff(root_, journal_, attachment.pod(), plan, entry));
    return ResultOf(request_, plan, addressing, attachment.link());
  }

 private:
  Result<Addressing> Allocate(const AttachPlan& plan) {
    if (plan.ipam_type.empty()) return ResolveAddressing(plan, {});
    const std::string rail = plan.rail ? plan.rail->name : "";
    undo_.Push("the address allocation", [this, type = plan.ipam_type, rail]() -> Result<void> {
      // A device that could not go home still has the address: DEL will release it.
      if (RH_TRY(journal_.Find({request_.network, request_.container_id, request_.ifname}))) return {};
      return IpamDel(request_, type, rail);
    });
    return ResolveAddressing(plan, RH_TRY(IpamAdd(request_, plan.ipam_type, rail, lock_fd_)));
  }

  // Before the kernel is touched: how it was is on record, and so is the way back.
  Result<void> Begin(const JournalEntry& entry) {
    undo_.Push("the attachment of " + entry.links.front().device, [this, entry]() -> Result<void> {
      RH_TRY(BringHome(root_, kernel_, entry, request_.netns, HomeDeadline()));
      RH_TRY(RemoveHandoffOf(root_, journal_, entry));
      return journal_.Remove(entry);
    });
    return journal_.Write(entry);
  }

  const Root& root_;
  Kernel& kernel_;
  const Journal& journal_;
  const CniRequest& request_;
  int lock_fd_;
  UndoStack& undo_;
};

}  // namespace

Result<std::string> RailheadPlugin::Add(const CniRequest& request) {
  const PluginConfig config = RH_TRY(ReadPluginConfig(request));
  const std::string device = RH_TRY(DeviceOf(config)).ToString();
  const FileLock lock = RH_TRY(LockDevice(root_, device));
  Attachment attachment = RH_TRY(Attachment::Open(root_, kernel_, request));
  const auto own = RH_TRY(journal_.Find({request.network, request.container_id, request.ifname}));
  // A killed ADD of the same device is finished below; another device's way home
  // is in that entry, which must not be written over.
  if (own && (own->phase == Phase::kDone || own->links.empty() || own->links.front().device != device)) {
    return Fail(ErrorCode::kExists,
                "container " + request.container_id + " has " + request.ifname + " of network " +
                    request.network + " already",
                "DEL it before another ADD");
  }
  RH_TRY(FinishEarlier(request, device));
  RH_TRY(attachment.RefuseTakenName());
  const AttachPlan plan = RH_TRY(ResolvePlan(root_, attachment.host(), config));

  UndoStack undo;
  Adding adding(root_, kernel_, journal_, request, lock.Fd(), undo);
  const auto result = adding.Run(attachment, plan);
  if (!result) return Fail(WithUndoErrors(result.error(), undo.Run()));
  undo.Commit();
  return CniResultJson(*result, request.cni_version);
}

Result<void> RailheadPlugin::FinishEarlier(const CniRequest& request, const std::string& device) {
  const auto earlier = RH_TRY(journal_.FindByDevice(device));
  if (!earlier) return {};
  // A planned entry is a killed ADD: its process would hold the lock.
  if (earlier->phase == Phase::kDone) {
    const auto ns = kernel_.OpenNetns(earlier->netns);
    if (ns && ns->inode() == earlier->netns_inode) {
      return Fail(ErrorCode::kBusy,
                  "device " + device + " is in the pod of container " + earlier->key.container_id + " as " +
                      earlier->key.ifname,
                  "its DEL has not come yet");
    }
  }
  RH_TRY_WRAP(BringHome(root_, kernel_, *earlier, "", HomeDeadline()),
              "finishing the earlier attachment " + earlier->key.ToString());
  RH_TRY(RemoveHandoffOf(root_, journal_, *earlier));
  RH_TRY_WRAP(IpamRelease(request, *earlier), "releasing the address of " + earlier->key.ToString());
  return journal_.Remove(*earlier);
}

}  // namespace railhead
