#include "deviceplugin/services/reachability/reachability_watch.h"

#include <algorithm>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/fabric/node_index.h"
#include "deviceplugin/node/resources/advertised.h"
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

Result<std::unique_ptr<ReachabilityWatch>> ReachabilityWatch::Start(const Root& root, Kernel& kernel,
                                                                    std::string keys_path,
                                                                    const Published<NodeIndices>& claimed,
                                                                    Calls calls) {
  auto echo = RH_TRY(EchoServer::Start());
  return std::unique_ptr<ReachabilityWatch>(
      new ReachabilityWatch(root, kernel, std::move(keys_path), claimed, std::move(calls), std::move(echo)));
}

ReachabilityWatch::ReachabilityWatch(const Root& root, Kernel& kernel, std::string keys_path,
                                     const Published<NodeIndices>& claimed, Calls calls,
                                     std::unique_ptr<EchoServer> echo)
    : root_(root),
      kernel_(kernel),
      keys_path_(std::move(keys_path)),
      claimed_(claimed),
      calls_(std::move(calls)),
      echo_(std::move(echo)),
      pods_(kernel),
      journal_(root),
      thread_([this] { Loop(); }) {}

ReachabilityWatch::~ReachabilityWatch() {
  Stop();
  thread_.join();
}

void ReachabilityWatch::Update(std::shared_ptr<const inventory::Inventory> inventory,
                               std::string fabric_path) {
  const std::lock_guard lock(mutex_);
  update_ = Node{std::move(inventory), std::move(fabric_path)};
  changed_.notify_all();
}

ReachabilityReport ReachabilityWatch::Report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void ReachabilityWatch::Stop() {
  stopping_ = true;
  pods_.Stop();
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool ReachabilityWatch::AwaitEnd(milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return ended_; });
}

// Reports an error that differs from the one before.
void ReachabilityWatch::Complain(const std::string& what, const Result<void>& done, std::string* before) {
  const std::string message = done ? "" : what + done.error().message;
  if (std::exchange(*before, message) != message && !done) calls_.failed(what, done.error());
}

void ReachabilityWatch::Loop() {
  auto restored = ReadReachabilityReport(root_);
  if (restored) restored_ = *std::move(restored);
  for (;;) {
    TakeUpdate();
    if (!rails_.empty()) Round();
    // Up to a quarter earlier or later: nodes that were started together must not probe together for ever.
    const auto interval = std::chrono::duration_cast<milliseconds>(settings_.interval);
    const auto quarter = interval.count() / 4;
    Wait(rails_.empty() ? milliseconds(60'000)
                        : interval + milliseconds(std::uniform_int_distribution<std::int64_t>(
                                         -quarter, quarter)(random_)));
    const std::lock_guard lock(mutex_);
    if (stopped_) break;
  }
  rails_.clear();
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void ReachabilityWatch::Wait(milliseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return stopped_ || update_; });
}

ReachabilityWatch::Claims ReachabilityWatch::ReadClaims() const {
  Claims claims{claimed_.Get(), std::nullopt};
  // Without an index that counts, another node may have this one's address.
  if (const auto own = ClaimedIndex(root_, NodeName(root_).value_or(""))) claims.own = *own;
  return claims;
}

Result<ReachabilityWatch::Plan> ReachabilityWatch::PlanOf(const Node& node, const Claims& claims) const {
  Plan plan;
  if (node.fabric_path.empty()) return plan;
  const auto fabric = RH_TRY(ReadFabric(root_, node.fabric_path));
  if (!fabric) return plan;
  plan.settings = RH_TRY(ParseReachabilitySettings(fabric->reachability, node.fabric_path));
  if (!plan.settings.enabled) return plan;
  NodeIndices nodes = fabric->nodes;
  plan.of_claims = fabric->ClaimsIndices();
  if (plan.of_claims) {
    const std::string own = NodeName(root_).value_or("");
    nodes = *claims.all;
    nodes.erase(own);
    if (claims.own) nodes.emplace(own, *claims.own);
  }
  const auto pfs = resources::PfsOfRails(*fabric, *node.inventory);
  for (const Rail& rail : fabric->rails) {
    RailPort port;
    port.rail = rail;
    port.rail.probe_addresses = rail.ProbeAddressesOf(nodes);
    if (const auto pf = pfs.find(rail.name); pf != pfs.end()) {
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

void ReachabilityWatch::TakeUpdate() {
  std::optional<Node> node;
  {
    const std::lock_guard lock(mutex_);
    node = std::exchange(update_, std::nullopt);
  }
  const Claims claims = node || of_claims_ ? ReadClaims() : Claims{};
  if (!node && (!of_claims_ || claims == claims_)) return;
  if (node) node_ = *std::move(node);
  claims_ = claims;
  auto plan = PlanOf(*node_, claims_);
  // An invalid fabric changes nothing here. Another part of railheadd reports it.
  if (plan) Apply(*std::move(plan));
}

void ReachabilityWatch::Apply(Plan plan) {
  of_claims_ = plan.of_claims;
  settings_ = plan.settings;
  ports_ = std::move(plan.ports);
  std::vector<std::unique_ptr<RailProber>> before = std::exchange(rails_, {});
  const std::string node = NodeName(root_).value_or("");
  for (const RailPort& port : ports_) {
    const auto same = std::ranges::find_if(
        before, [&](const auto& old) { return old && old->port().rail.name == port.rail.name; });
    auto rail = same == before.end() ? std::make_unique<RailProber>(kernel_, *echo_, node) : std::move(*same);
    rail->Set(port, settings_);
    const RailReachability* known = restored_ ? restored_->Find(port.rail.name) : nullptr;
    if (known != nullptr) rail->Restore(*known);
    rails_.push_back(std::move(rail));
  }
  restored_.reset();
  if (!rails_.empty()) return;
  // Probing is off, so nothing is known.
  (void)RemoveFile(kReachabilityFile.PathIn(root_));
  const std::lock_guard lock(mutex_);
  report_ = {};
}

Result<void> ReachabilityWatch::ProbeRails() {
  const NetNs host = RH_TRY(kernel_.HostNetns());
  std::vector<Probe> probes;
  for (const auto& rail : rails_) {
    if (stopping_) return {};
    rail->Prepare(host);
    rail->AddProbes(random_, &probes);
  }
  RH_TRY(SendProbes(&probes, kAnswers, keys_.get()));
  for (const auto& rail : rails_) rail->SendRdmaProbes(probes);
  const auto answers = EchoServer::Clock::now() + kAnswers;
  for (const auto& rail : rails_) {
    if (stopping_) return {};
    rail->TakeAnswers(probes, answers);
    rail->Judge(host, ports_);
  }
  return {};
}

void ReachabilityWatch::ProbePods() {
  if (settings_.pods.count() == 0) return;
  const auto journal = journal_.Read();
  if (!journal) return Complain("reading the journal for pods to probe", Fail(journal.error()), &complaint_);
  PodProber::Targets targets;
  for (const auto& rail : rails_) {
    targets[rail->port().rail.name] = {rail->port().rail.gateway, rail->ReachablePeers(kEndpointsForPods),
                                       rail->Report().state == ReachabilityState::kDead,
                                       rail->port().rail.traffic_class.value_or(0)};
  }
  pods_.Round(journal->entries, targets, settings_, keys_.get());
}

Result<void> ReachabilityWatch::TakeKeys() {
  auto read = RH_TRY(SharedKeys::Read(keys_path_));
  if (read && keys_ && *read == *keys_) return {};
  if (!read && !keys_) return {};
  keys_ = read ? std::make_shared<const SharedKeys>(*std::move(read)) : nullptr;
  echo_->SetKeys(keys_);
  return {};
}

void ReachabilityWatch::Round() {
  Complain("reading the keys of probes", TakeKeys(), &keys_complaint_);
  for (const auto& rail : rails_) rail->SetKeys(keys_);
  Complain("probing the rails", ProbeRails(), &complaint_);
  if (!stopping_) ProbePods();
  // An interrupted round does not count.
  if (stopping_) return;
  Publish();
}

void ReachabilityWatch::Publish() {
  ReachabilityReport report;
  report.node = NodeName(root_).value_or("");
  report.time = std::chrono::system_clock::now();
  report.authentic = keys_ && !keys_->takes_unsigned();
  for (const auto& rail : rails_) {
    report.rails.push_back(rail->Report());
    report.rails.back().stale = pods_.StaleSoFar(report.rails.back().rail);
  }
  report.pods = pods_.Pods();
  ReachabilityReport before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(report_, report);
  }
  Save(before, report);
  calls_.round_done(before, report);
}

void ReachabilityWatch::Save(const ReachabilityReport& before, const ReachabilityReport& report) {
  const auto now = std::chrono::steady_clock::now();
  if (SaysTheSame(before, report) && now < saved_ + kSave) return;
  saved_ = now;
  if (const auto written = WriteReachabilityReport(root_, report); !written)
    calls_.failed("writing the reachability report", written.error());
}

}  // namespace railhead::reachability
