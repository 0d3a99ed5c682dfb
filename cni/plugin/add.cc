#include <algorithm>
#include <chrono>

#include "cni/attachment/acquire.h"
#include "cni/attachment/attach.h"
#include "cni/attachment/build_journal_entry.h"
#include "cni/attachment/device_info.h"
#include "cni/attachment/device_info_owner.h"
#include "cni/attachment/devices.h"
#include "cni/attachment/driver_settings.h"
#include "cni/attachment/host_device.h"
#include "cni/attachment/ipam_delegate.h"
#include "cni/attachment/make_ready.h"
#include "cni/attachment/nccl_step.h"
#include "cni/attachment/plugin_config.h"
#include "cni/attachment/record_tenant.h"
#include "cni/attachment/release.h"
#include "cni/plugin/plugin.h"
#include "cni/protocol/cni_result.h"
#include "cni/state/attach_log.h"
#include "netns/base/state_folder.h"
#include "netns/base/undo_stack.h"

namespace railhead::attachment {
namespace {

// An address that another host uses costs one attempt, and so does a device with interfaces on top. Beyond
// this limit it cannot be chance.
constexpr int kMaxAddAttempts = 3;

// The result of the plugins before this one in the chain.
Result<CniResult> PreviousResult(const PluginConfig& config) {
  if (config.prev_result.empty()) return CniResult{};
  return ParseCniResult(config.prev_result, "prevResult");
}

CniRoute ToCniRoute(const GatewayRoute& route) {
  CniRoute result;
  result.destination = route.destination;
  result.gateway = route.gateway;
  if (route.table) result.table = static_cast<int>(*route.table);
  if (route.metric) result.priority = static_cast<int>(*route.metric);
  if (route.mtu) result.mtu = static_cast<int>(*route.mtu);
  if (route.advmss) result.advmss = static_cast<int>(*route.advmss);
  if (route.scope) result.scope = static_cast<int>(*route.scope);
  return result;
}

void AddInterface(CniResult& result, const CniRequest& request, const AttachedDevice& device,
                  const Link& pod_link, const Addressing& addressing) {
  const int index = static_cast<int>(result.interfaces.size());
  CniInterface interface;
  interface.name = device.pod_name;
  interface.sandbox = request.netns;
  interface.pci_id = device.device;
  if (device.before.user_space) {
    const MacAddress mac = device.requested.vf.mac.value_or(device.before.mac);
    if (!mac.IsZero()) interface.mac = mac.ToString();
  } else {
    interface.mac = pod_link.mac.ToString();
    interface.mtu = pod_link.mtu;
  }
  result.interfaces.push_back(std::move(interface));
  for (std::size_t i = 0; i < addressing.addresses.size(); ++i) {
    result.ips.push_back({addressing.addresses[i], addressing.gateways[i], index});
  }
  for (const auto& route : addressing.routes) result.routes.push_back(ToCniRoute(route));
  if (!addressing.dns.empty()) result.dns = addressing.dns;
}

// The message says what ADD failed for. The hint says what is left: DEL or railheadd's reconcile restores it.
Error WithUndoErrors(Error error, const std::vector<Error>& undo_errors) {
  for (const auto& undo : undo_errors) {
    if (!error.hint.empty()) error.hint += "; ";
    error.hint += "not undone: " + Describe(undo) + "; DEL or railheadd will restore it";
  }
  return error;
}

bool HasAnnounced(const AttachPlan& plan) {
  return plan.config.announce && !plan.ipam_type.empty() &&
         std::ranges::any_of(plan.devices,
                             [](const DevicePlan& device) { return !device.record.before.user_space; });
}

// kExists when the pod has an interface of one of the plan's names already.
Result<void> RefuseUsedNames(PodNetwork& network, const AttachPlan& plan) {
  for (const auto& device : plan.devices) {
    const std::string& name = device.record.pod_name;
    if (!RH_TRY(network.pod->FindLink(name))) continue;
    return Fail(ErrorCode::kExists, "interface " + name + " exists already in " + network.pod_ns.path(),
                "use another CNI_IFNAME, or DEL the earlier attachment");
  }
  return {};
}

// Attaches acquired devices. `undo` has the inverse of every change.
class AddOperation {
 public:
  AddOperation(const Root& root, Kernel& kernel, const Journal& journal, const CniRequest& request,
               PhaseClock& clock, UndoStack& undo)
      : root_(root), kernel_(kernel), journal_(journal), request_(request), clock_(clock), undo_(undo) {}

  Result<CniResult> Run(AttachPlan& plan, PodNetwork& network, const DeviceLocks& locks) {
    JournalEntry entry = RH_TRY(BuildJournalEntry(root_, kernel_, network, request_, plan));
    RH_TRY(RefuseDeviceInfoFileOfOthers(root_, entry));
    RH_TRY(Begin(plan, entry, network));
    const auto addressing = RH_TRY(Allocate(plan, locks, entry));
    RH_TRY(RecordAddressing(network, plan, addressing, entry));
    RH_TRY_WRAP(journal_.Write(entry), "writing the journal");
    clock_.Done("addresses");
    Attachment attachment(root_, kernel_, network, plan, addressing, entry);
    if (auto done = Complete(attachment, plan, network, entry); !done)
      return Fail(attachment.Explain(std::move(done.error())));
    CniResult result = RH_TRY(PreviousResult(plan.config));
    for (std::size_t i = 0; i < entry.devices.size(); ++i)
      AddInterface(result, request_, entry.devices[i], attachment.pod_link(i), addressing[i]);
    return result;
  }

  // It failed only because another host uses an address, which the IPAM plugin will not assign again, or
  // because of devices that have to be reset.
  [[nodiscard]] bool may_succeed_again() const { return address_was_in_use_ || must_reset_; }

 private:
  // Before any change: writes the journal entry, and puts the release on `undo`.
  Result<void> Begin(const AttachPlan& plan, const JournalEntry& entry, const PodNetwork& network) {
    RH_TRY(RecordTenant(root_, TenantOf(request_.args), plan));
    undo_.Push("the attachment", [this, key = entry.key, pod_ns = &network.pod_ns]() -> Result<void> {
      // Reads the entry again: it may have addresses and rules now.
      const auto recorded = RH_TRY(journal_.Find(key));
      if (!recorded) return {};
      ReleaseOptions options;
      options.pod_ns = pod_ns;
      return ReleaseAttachment(root_, kernel_, journal_, request_, *recorded, options);
    });
    RH_TRY_WRAP(journal_.Write(entry), "writing the journal");
    clock_.Done("journal");
    return {};
  }

  Result<std::vector<Addressing>> Allocate(const AttachPlan& plan, const DeviceLocks& locks,
                                           JournalEntry& entry) {
    const auto results = IpamAdd(request_, plan, locks.Fds(), entry);
    if (!results) {
      RH_TRY_WRAP(journal_.Write(entry), "writing the journal");  // with the call that failed
      return Fail(results.error());
    }
    std::vector<Addressing> addressing;
    for (std::size_t i = 0; i < plan.devices.size(); ++i)
      addressing.push_back(RH_TRY(ResolveAddressing(plan.config, plan.devices[i], (*results)[i])));
    return addressing;
  }

  // Stores the addresses in use in the entry, so that the release reports them to the IPAM plugin.
  Result<void> RefuseConflicts(Attachment& attachment, JournalEntry& entry) {
    auto refused = attachment.RefuseConflicts();
    if (refused || !ReportAddressesInUse(attachment.in_use(), attachment.confirmed_in_use(), entry))
      return refused;
    RH_TRY_WRAP(journal_.Write(entry), "writing the journal");
    address_was_in_use_ = true;
    return refused;
  }

  Result<void> Attach(Attachment& attachment, const AttachPlan& plan, JournalEntry& entry) {
    RH_TRY(attachment.ConfigureVfs());
    clock_.Done("vf");
    RH_TRY(attachment.MoveIntoPod());
    clock_.Done("move");
    auto free = attachment.RefuseUppers();
    must_reset_ = attachment.must_reset();
    RH_TRY(std::move(free));
    clock_.Done("uppers");
    RH_TRY(attachment.ConfigureLinks());
    clock_.Done("configure");
    RH_TRY(attachment.BringUp());
    clock_.Done("up");
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::seconds(plan.config.link_timeout_seconds);
    RH_TRY(attachment.AwaitCarrier(deadline));
    clock_.Done("carrier");
    RH_TRY(RefuseConflicts(attachment, entry));
    clock_.Done("conflicts");
    RH_TRY(attachment.Announce());
    clock_.Done("announce");
    RH_TRY(attachment.SetUpRdma(deadline));
    clock_.Done("rdma");
    RH_TRY(attachment.ResolveGateways(deadline));
    clock_.Done("gateways");
    return {};
  }

  Result<void> Complete(Attachment& attachment, const AttachPlan& plan, PodNetwork& network,
                        JournalEntry& entry) {
    RH_TRY(Attach(attachment, plan, entry));
    RH_TRY(RequireNcclConfig(plan, entry));
    RH_TRY_WRAP(WriteDeviceInfoFile(root_, entry), "writing the device-info file");
    RH_TRY(FinishWithNcclConfig(root_, journal_, kernel_, network, plan, entry));
    clock_.Done("nccl");
    return {};
  }

  static Result<void> RequireNcclConfig(const AttachPlan& plan, const JournalEntry& entry) {
    for (std::size_t i = 0; i < plan.devices.size(); ++i) {
      const AttachedDevice& device = entry.devices[i];
      if (!plan.devices[i].nccl_config_required || device.rdma.gid_index) continue;
      return Fail(ErrorCode::kInvalid,
                  "device " + device.device + " got no address, and its NCCL configuration is required",
                  "configure an IPAM plugin, or \"ncclConfig\": \"off\"");
    }
    return {};
  }

  const Root& root_;
  Kernel& kernel_;
  const Journal& journal_;
  const CniRequest& request_;
  PhaseClock& clock_;
  UndoStack& undo_;
  bool address_was_in_use_ = false;
  bool must_reset_ = false;
};

struct AddAttempt {
  Result<CniResult> result = CniResult{};
  // The devices are restored, and what made this attempt fail is different in a further one.
  bool retry = false;
};

AddAttempt TryAdd(AddOperation& operation, UndoStack& undo, AttachPlan& plan, PodNetwork& network,
                  const DeviceLocks& locks) {
  AddAttempt attempt{operation.Run(plan, network, locks)};
  if (attempt.result) {
    undo.Commit();
    return attempt;
  }
  const auto undo_errors = undo.Run();
  attempt.retry = operation.may_succeed_again() && undo_errors.empty();
  attempt.result = Fail(WithUndoErrors(std::move(attempt.result.error()), undo_errors));
  return attempt;
}

Error WithLostDevices(const Root& root, const DeviceChoice& choice, Error error) {
  for (const PciAddress& device : choice.devices) {
    Error lost = WithLostDevice(root, device, error);
    if (lost.message != error.message) return lost;
  }
  return error;
}

}  // namespace

Result<std::string> RailheadPlugin::Add(const CniRequest& request) {
  PhaseClock clock;
  RH_TRY(CheckStateFolders(root_));
  AttachTiming timing{{request.network, request.container_id, request.ifname}, 0, {}, {}};
  auto result = Attach(request, clock, timing.links);
  if (result && timing.links == 0) return result;  // chained, for a pod without devices
  if (!result) {
    clock.Done("failed");
    timing.error = result.error().message;
    timing.hint = result.error().hint;
    timing.code = CniCodeOf(result.error().code);
    timing.pod = PodName(request.args);
    timing.pod_uid = PodUid(request.args);
  }
  timing.phases = clock.phases();
  LogAttachTiming(root_, timing);
  return result;
}

Result<std::string> RailheadPlugin::Attach(const CniRequest& request, PhaseClock& clock, std::size_t& links) {
  const AddCall call = RH_TRY(ReadAddCall(root_, request));
  if (call.choice.devices.empty())
    return CniResultJson(RH_TRY(PreviousResult(call.config)), request.cni_version);
  links = call.choice.devices.size();
  PodNetwork network = RH_TRY(PodNetwork::Open(kernel_, request));
  const auto previous_del_deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(call.config.previous_del_timeout_seconds);
  auto acquired = AcquireDevices(root_, kernel_, journal_, request, call.choice, previous_del_deadline);
  if (!acquired) return Fail(WithLostDevices(root_, call.choice, std::move(acquired.error())));
  const DeviceLocks locks = *std::move(acquired);
  clock.Done("acquire");
  auto planned = Plan(call, network, clock);
  if (!planned) return Fail(WithLostDevices(root_, call.choice, std::move(planned.error())));
  AttachPlan plan = *std::move(planned);
  RH_TRY(RefuseUsedNames(network, plan));
  clock.Done("plan");

  std::optional<Error> retried;  // what caused the retry
  AddAttempt attempt;
  for (int tried = 0; tried < kMaxAddAttempts && (tried == 0 || attempt.retry); ++tried) {
    if (tried > 0) {
      retried = attempt.result.error();
      // The devices have other indices now, and some are reset.
      auto again = Plan(call, network, clock);
      if (!again) {
        attempt = {Fail(std::move(again.error()))};
        break;
      }
      plan = *std::move(again);
    }
    UndoStack undo;
    AddOperation operation(root_, kernel_, journal_, request, clock, undo);
    attempt = TryAdd(operation, undo, plan, network, locks);
  }
  // The last error only says, for example, that no other address is free for a pod that requests a certain
  // one. What caused the retry explains more.
  if (!attempt.result && !attempt.retry && retried) {
    retried->hint += "; another attempt: " + Describe(attempt.result.error());
    attempt.result = Fail(*std::move(retried));
  }
  if (!attempt.result) return Fail(std::move(attempt.result.error()));
  if (HasAnnounced(plan)) announced_ = {request.network, request.container_id, request.ifname};
  return CniResultJson(*attempt.result, request.cni_version);
}

Result<AttachPlan> RailheadPlugin::Plan(const AddCall& call, const PodNetwork& network, PhaseClock& clock) {
  AttachPlan plan = RH_TRY(ResolvePlan(root_, *network.host, call));
  if (RH_TRY(MakeReadyFor(root_, kernel_, journal_, TenantOf(call.request.args), call.may.reset(), plan))) {
    clock.Done("reset");
    // A reset device has a new interface.
    plan = RH_TRY(ResolvePlan(root_, *network.host, call));
  }
  RH_TRY(ReadDriverSettings(kernel_, network.host_ns, plan.devices));
  return plan;
}

}  // namespace railhead::attachment
