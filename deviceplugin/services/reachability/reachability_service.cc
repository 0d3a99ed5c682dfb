#include "deviceplugin/services/reachability/reachability_service.h"

#include <algorithm>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/fabric/node_index.h"
#include "deviceplugin/services/reachability/reachability_log.h"
#include "deviceplugin/services/reachability/reachability_metrics.h"
#include "deviceplugin/services/reachability/send_probes.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"

namespace railhead::reachability {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswers{1'000};
constexpr std::chrono::seconds kSave{60};
constexpr std::size_t kEndpointsForPods = 2;
// Until a fabric says otherwise, which wakes the service.
constexpr milliseconds kWithoutRails{60'000};
// Each rail may wait for its address conflict check, and each pod for its answers.
constexpr std::chrono::minutes kLongestRound{15};

// A changed state of a rail, a pod or a peer is written at once.
bool SaysTheSame(const ReachabilityReport& a, const ReachabilityReport& b) {
  const auto same_peer = [](const PeerReachability& one, const PeerReachability& other) {
    return one.node == other.node && one.state == other.state;
  };
  const auto same_rail = [&](const RailReachability& one, const RailReachability& other) {
    return one.rail == other.rail && one.state == other.state &&
           std::equal(one.peers.begin(), one.peers.end(), other.peers.begin(), other.peers.end(), same_peer);
  };
  const auto same_pod = [](const PodReachability& one, const PodReachability& other) {
    return one.device == other.device && one.state == other.state;
  };
  return std::equal(a.rails.begin(), a.rails.end(), b.rails.begin(), b.rails.end(), same_rail) &&
         std::equal(a.pods.begin(), a.pods.end(), b.pods.begin(), b.pods.end(), same_pod);
}

}  // namespace

ReachabilityService::ReachabilityService(Root root, Kernel& kernel, EchoServer& echo, std::string keys_path,
                                         const Published<NodeSnapshot>& node,
                                         const Published<NodeIndices>& claimed, Log* log)
    : root_(std::move(root)),
      kernel_(kernel),
      echo_(echo),
      keys_path_(std::move(keys_path)),
      node_(node),
      claimed_(claimed),
      log_(log),
      pods_(kernel),
      journal_(root_) {}

void ReachabilityService::Register(MetricRegistry& metrics) {
  RegisterReachability(metrics, report_);
}

void ReachabilityService::Complain(const std::string& what, const Result<void>& done, OncePerChange* known) {
  if (known->IsNew(done)) {
    log_->Warning("probing failed; reachability may be out of date", done.error(), {{"what", what}});
  }
}

Result<void> ReachabilityService::Run(Worker& worker) {
  node_.Subscribe(worker);
  auto restored = ReadReachabilityReport(root_);
  if (restored) restored_ = *std::move(restored);
  while (!worker.StopRequested()) {
    const auto seen = node_.Get();
    TakeNode();
    if (!rails_.empty()) Round(worker);
    // A node that changes during the wait is taken at once.
    const auto until = Worker::Clock::now() + Pause();
    while (!worker.StopRequested() && node_.Get() == seen && Worker::Clock::now() < until) worker.Wait(until);
  }
  rails_.clear();
  return {};
}

// Up to a quarter earlier or later: nodes that were started together must not probe together for ever.
std::chrono::milliseconds ReachabilityService::Pause() {
  if (rails_.empty()) return kWithoutRails;
  const auto interval = std::chrono::duration_cast<milliseconds>(settings_.interval);
  const auto quarter = interval.count() / 4;
  return interval + milliseconds(std::uniform_int_distribution<std::int64_t>(-quarter, quarter)(random_));
}

ReachabilityService::Claims ReachabilityService::ReadClaims() const {
  Claims claims{claimed_.Get(), std::nullopt};
  // Without an index that counts, another node may have this one's address.
  if (const auto own = ClaimedIndex(root_, NodeName(root_).value_or(""))) claims.own = *own;
  return claims;
}

Result<ReachabilityService::Plan> ReachabilityService::PlanOf(const NodeSnapshot& node,
                                                              const Claims& claims) const {
  Plan plan;
  const Fabric* const fabric = node.rails();
  if (fabric == nullptr) return plan;
  plan.settings = RH_TRY(ParseReachabilitySettings(fabric->reachability, node.fabric_path));
  if (!plan.settings.enabled) return plan;
  const std::string own = NodeName(root_).value_or("");
  NodeIndices nodes = fabric->nodes;
  plan.of_claims = fabric->ClaimsIndices();
  if (plan.of_claims) {
    nodes = *claims.all;
    nodes.erase(own);
    if (claims.own) nodes.emplace(own, *claims.own);
  }
  for (const Rail& rail : fabric->rails) {
    RailPort port;
    port.rail = rail;
    port.rail.probe_addresses = rail.ProbeAddressesOf(nodes);
    port.SetNetwork(own, nodes);
    if (const auto pf = node.pf_of_rail.find(rail.name); pf != node.pf_of_rail.end()) {
      port.device = pf->second;
      const auto* const found = node.inventory->Find(pf->second);
      port.pf = found->pf_name;
      if (const auto rdma = RdmaDevicesOf(root_, found->address); rdma && !rdma->empty())
        port.rdma = rdma->front();
    }
    port.pf_in_pods = std::ranges::any_of(fabric->pools, [&](const Pool& pool) {
      return pool.device == PoolDevice::kPf && Contains(pool.rails, rail.name);
    });
    plan.ports.push_back(std::move(port));
  }
  return plan;
}

void ReachabilityService::TakeNode() {
  auto node = node_.Get();
  if (node->inventory == nullptr) return;
  const bool is_new = node != known_;
  const Claims claims = is_new || of_claims_ ? ReadClaims() : Claims{};
  if (!is_new && (!of_claims_ || claims == claims_)) return;
  known_ = std::move(node);
  claims_ = claims;
  auto plan = PlanOf(*known_, claims_);
  // Discovery refuses such a fabric.
  if (plan) Apply(*std::move(plan));
}

void ReachabilityService::Apply(Plan plan) {
  of_claims_ = plan.of_claims;
  settings_ = plan.settings;
  ports_ = std::move(plan.ports);
  std::vector<std::unique_ptr<RailProber>> before = std::exchange(rails_, {});
  const std::string node = NodeName(root_).value_or("");
  for (const RailPort& port : ports_) {
    const auto same = std::ranges::find_if(
        before, [&](const auto& old) { return old && old->port().rail.name == port.rail.name; });
    auto rail = same == before.end() ? std::make_unique<RailProber>(kernel_, echo_, node) : std::move(*same);
    rail->Set(port, settings_);
    const RailReachability* known = restored_ ? restored_->Find(port.rail.name) : nullptr;
    if (known != nullptr) rail->Restore(*known);
    rails_.push_back(std::move(rail));
  }
  restored_.reset();
  if (!rails_.empty()) return;
  // Probing is off, so nothing is known.
  (void)RemoveFile(kReachabilityFile.PathIn(root_));
  report_.Set({});
}

Result<void> ReachabilityService::ProbeRails(Worker& worker) {
  const NetNs host = RH_TRY(kernel_.HostNetns());
  std::vector<Probe> probes;
  for (const auto& rail : rails_) {
    if (worker.StopRequested()) return {};
    rail->Prepare(host);
    if (const auto helper = rail->rdma_worker())
      worker.Adopt(helper, "RDMA probes of " + rail->port().rail.name);
    rail->AddProbes(random_, &probes);
  }
  RH_TRY(SendProbes(&probes, kAnswers, keys_.get()));
  for (const auto& rail : rails_) rail->SendRdmaProbes(probes);
  const auto answers = EchoServer::Clock::now() + kAnswers;
  for (const auto& rail : rails_) {
    if (worker.StopRequested()) return {};
    rail->TakeAnswers(probes, answers);
    rail->Judge(host, ports_);
  }
  return {};
}

void ReachabilityService::ProbePods(const Worker& worker) {
  if (settings_.pods.count() == 0) return;
  const auto journal = journal_.Read();
  if (!journal) return Complain("reading the journal for pods to probe", Fail(journal.error()), &complaint_);
  PodProber::Targets targets;
  for (const auto& rail : rails_) {
    targets[rail->port().rail.name] = {rail->port().gateway, rail->ReachablePeers(kEndpointsForPods),
                                       rail->Report().state == ReachabilityState::kDead,
                                       rail->port().rail.traffic_class.value_or(0)};
  }
  pods_.Round(journal->entries, targets, settings_, keys_.get(), worker.stop());
}

Result<void> ReachabilityService::TakeKeys() {
  auto read = RH_TRY(SharedKeys::Read(keys_path_));
  if (read && keys_ && *read == *keys_) return {};
  if (!read && !keys_) return {};
  keys_ = read ? std::make_shared<const SharedKeys>(*std::move(read)) : nullptr;
  echo_.SetKeys(keys_);
  return {};
}

void ReachabilityService::Round(Worker& worker) {
  worker.Busy(kLongestRound, "a round of probes");
  Complain("reading the keys of probes", TakeKeys(), &keys_complaint_);
  for (const auto& rail : rails_) rail->SetKeys(keys_);
  Complain("probing the rails", ProbeRails(worker), &complaint_);
  if (!worker.StopRequested()) ProbePods(worker);
  // An interrupted round does not count.
  if (worker.StopRequested()) return;
  Publish();
}

void ReachabilityService::Publish() {
  ReachabilityReport report;
  report.node = NodeName(root_).value_or("");
  report.time = std::chrono::system_clock::now();
  report.authentic = keys_ && !keys_->takes_unsigned();
  for (const auto& rail : rails_) {
    report.rails.push_back(rail->Report());
    report.rails.back().stale = pods_.StaleSoFar(report.rails.back().rail);
  }
  report.pods = pods_.Pods();
  const auto before = report_.Get();
  Save(*before, report);
  LogReachability(log_, *before, report);
  const bool changed = verdicts_.Update(report, RailVerdicts::Clock::now());
  report_.Set(std::move(report));
  if (changed) faults_.Set(verdicts_.Faults());
}

void ReachabilityService::Save(const ReachabilityReport& before, const ReachabilityReport& report) {
  const auto now = std::chrono::steady_clock::now();
  if (SaysTheSame(before, report) && now < saved_ + kSave) return;
  saved_ = now;
  if (const auto written = WriteReachabilityReport(root_, report); !written)
    log_->Warning("probing failed; reachability may be out of date", written.error(),
                  {{"what", "writing the reachability report"}});
}

}  // namespace railhead::reachability
