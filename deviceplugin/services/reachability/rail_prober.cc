#include "deviceplugin/services/reachability/rail_prober.h"

#include <net/if.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "cni/fabric/probe_endpoint_mac.h"
#include "cni/fabric/rail_routes.h"
#include "deviceplugin/services/reachability/endpoint_rdma.h"
#include "deviceplugin/services/reachability/probe_endpoint.h"
#include "netns/base/text.h"

namespace railhead::reachability {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGatewayBudget{700};
constexpr milliseconds kForeignBudget{300};
// The gateway counts as silent after this many rounds without an answer: a single ARP packet may be lost.
constexpr int kGatewayMisses = 2;
// A dead rail is tried in the VLANs of other rails in its first round, and then once in this many rounds.
constexpr int kForeignEvery = 30;
// The bursts of one peer. Its interval is at least a second, less a quarter, and its railheadd may have
// restarted.
constexpr int kBurstsInASecond = 3;
// The number of peers that a sentence names. The report has all of them.
constexpr std::size_t kNamed = 4;

std::string NamesOf(const std::vector<PeerReachability>& peers, PeerState state) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const PeerReachability& peer : peers) {
    if (peer.state != state) continue;
    if (names.size() < kNamed) {
      names.push_back(peer.node);
    } else {
      ++more;
    }
  }
  return Join(names, ", ") + (more == 0 ? "" : " and " + std::to_string(more) + " more");
}

}  // namespace

void JudgeRail(const std::vector<PeerReachability>& peers, const std::string& unready,
               RailReachability* reach) {
  std::size_t judged = 0;
  std::size_t well = 0;
  std::size_t silent = 0;
  for (const PeerReachability& peer : peers) {
    judged += peer.state == PeerState::kUnknown ? 0 : 1;
    well += peer.state == PeerState::kReachable ? 1 : 0;
    silent += peer.state == PeerState::kSilent || peer.state == PeerState::kOneWay ? 1 : 0;
  }
  const bool has_gateway = reach->gateway.has_value();
  const bool gateway = has_gateway && reach->gateway->answers;
  std::vector<std::string> because;
  if (has_gateway && !gateway)
    because.push_back("gateway " + reach->gateway->address.ToString() + " does not answer");
  for (const PeerState state : {PeerState::kSilent, PeerState::kOneWay, PeerState::kNoRdma, PeerState::kMtu,
                                PeerState::kPaths, PeerState::kLossy}) {
    const std::string names = NamesOf(peers, state);
    if (!names.empty()) because.push_back(std::string(WordOf(state)) + ": " + names);
  }
  if (!unready.empty()) {
    reach->state = ReachabilityState::kDead;
    because = {unready};
  } else if (!has_gateway && judged == 0) {
    reach->state = ReachabilityState::kUnknown;
    because = {peers.empty() ? "neither a gateway nor other nodes to probe" : "not probed often enough"};
  } else if (!gateway && silent == judged) {
    reach->state = ReachabilityState::kDead;
  } else {
    reach->state = (!has_gateway || gateway) && well == judged ? ReachabilityState::kReachable
                                                               : ReachabilityState::kDegraded;
  }
  reach->probed = unready.empty() && reach->state != ReachabilityState::kUnknown;
  reach->because = Join(because, "; ");
}

void RailPort::SetNetwork(const std::string& node, const NodeIndices& indices) {
  network = rail.subnet;
  if (rail.node_subnet) {
    const auto own = indices.find(node);
    const auto ranges = rail.RangesOf(node, own == indices.end() ? std::nullopt : std::optional(own->second));
    network = ranges.empty() ? std::nullopt : std::optional(rail.NetworkOf(ranges.front().first));
  }
  gateway = network ? rail.GatewayOf(*network) : std::nullopt;
}

RailProber::~RailProber() {
  Close();
}

void RailProber::Close() {
  // Must be first: the kernel keeps the soft RoCE device, and the endpoint's device, until its last user
  // closes it.
  rdma_.reset();
  echo_.Drop(port_.rail.name);
  sockets_.clear();
  endpoint_.reset();
}

void RailProber::Set(const RailPort& port, const ReachabilitySettings& settings) {
  const auto now = Wall::now();
  const bool same = settings_ == settings && port_.network == port.network &&
                    SubnetsOf(port_.rail) == SubnetsOf(port.rail) &&
                    port_.rail.traffic_class == port.rail.traffic_class &&
                    port_.rail.service_level == port.rail.service_level &&
                    port_.rail.soft_roce == port.rail.soft_roce && port_.rdma == port.rdma;
  if (!same) Close();
  port_ = port;
  settings_ = settings;
  reach_.rail = port.rail.name;
  reach_.device = port.device;
  reach_.pf = port.pf;
  if (reach_.since == Wall::time_point()) reach_.since = now;
  const auto own = port.rail.probe_addresses.find(node_);
  reach_.probe_address = own == port.rail.probe_addresses.end() ? std::nullopt : std::optional(own->second);
  if (!port.gateway) {
    reach_.gateway.reset();
  } else if (!reach_.gateway || reach_.gateway->address != *port.gateway) {
    reach_.gateway = GatewayReachability{*port.gateway, false, std::nullopt, now};
    gateway_misses_ = 0;
  }
  peers_.SetPeers(reach_.probe_address ? port.rail.probe_addresses : std::map<std::string, IpAddress>{},
                  node_, now);
  UpdatePeers();
}

void RailProber::SetKeys(std::shared_ptr<const SharedKeys> keys) {
  keys_ = std::move(keys);
  if (rdma_) rdma_->SetKeys(keys_);
}

void RailProber::Restore(const RailReachability& before) {
  if (before.device != reach_.device) return;
  peers_.Restore(before.peers);
  reach_.state = before.state;
  reach_.since = before.since;
  reach_.because = before.because;
  if (before.gateway && reach_.gateway && before.gateway->address == reach_.gateway->address)
    reach_.gateway = before.gateway;
}

ProbeEndpointPlan RailProber::PlanOf(int lower) const {
  ProbeEndpointPlan plan{node_,        port_.rail.name,    lower, port_.rail.vlan, port_.rail.mtu,
                         std::nullopt, port_.rail.vlan_qos};
  if (!reach_.probe_address || !port_.network) return plan;
  plan.address = IpPrefix{*reach_.probe_address, port_.network->length};
  plan.gateway = port_.gateway;
  if (plan.gateway) plan.routes = port_.rail.routes;
  return plan;
}

Result<void> RailProber::OpenSockets() {
  const auto open = [this](std::uint16_t port) {
    return OpenUdp(endpoint_->ns(), endpoint_->device(), {*reach_.probe_address, port},
                   port_.rail.traffic_class.value_or(0));
  };
  const EchoServer::Rail rail{SubnetsOf(port_.rail), PeerAddresses(),
                              kBurstsInASecond * PeerTable::MostOfBurst(settings_.paths)};
  echo_.Serve(port_.rail.name, rail, RH_TRY(open(settings_.port)));
  // Every round uses the same sockets, so that a port's path stays the same.
  std::vector<UniqueFd> sockets;
  sockets.reserve(static_cast<std::size_t>(settings_.paths));
  for (int path = 0; path < settings_.paths; ++path)
    sockets.push_back(RH_TRY(open(static_cast<std::uint16_t>(49'152 + path))));
  sockets_ = std::move(sockets);
  return {};
}

std::set<IpAddress> RailProber::PeerAddresses() const {
  std::set<IpAddress> peers;
  for (std::size_t i = 0; i < peers_.size(); ++i) peers.insert(peers_.At(i).address);
  return peers;
}

std::map<IpAddress, MacAddress> RailProber::PeerMacs() const {
  std::map<IpAddress, MacAddress> macs;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const PeerReachability& peer = peers_.At(i);
    // Others are behind the gateway.
    if (!port_.network || !port_.network->Contains(peer.address)) continue;
    macs[peer.address] = ProbeEndpointMac(peer.node, port_.rail.name);
  }
  return macs;
}

void RailProber::UpdatePeers() {
  const auto peers = PeerAddresses();
  if (rdma_) rdma_->SetPeers(peers);
  echo_.SetPeers(port_.rail.name, peers);
  if (rdma_) echo_.SetQueuePair(port_.rail.name, rdma_->own().number);
}

// If RDMA fails, the other probes go on.
void RailProber::OpenRdma() {
  if (!settings_.rdma || !reach_.probe_address) {
    reach_.rdma.reset();
    return;
  }
  if (rdma_ && rdma_->IsLost()) rdma_.reset();
  if (!rdma_) {
    const EndpointRdmaPlan plan{port_.rdma, port_.rail.soft_roce ? port_.pf : "",
                                port_.rail.traffic_class.value_or(0),
                                // NICs put it into the VLAN's tag.
                                port_.rail.service_level.value_or(port_.rail.vlan_qos)};
    // Called at once: otherwise peers would probe a queue pair that is gone, and report that it does not
    // answer.
    auto opened = OpenEndpointRdma(kernel_, *endpoint_, plan,
                                   [&echo = echo_, rail = port_.rail.name] { echo.SetQueuePair(rail, 0); });
    if (opened) {
      rdma_ = *std::move(opened);
      rdma_->SetKeys(keys_);
      rdma_misses_ = 0;
      UpdatePeers();
      reach_.rdma = RdmaReachability{rdma_->device(), "", rdma_->gid_index()};
    } else if (++rdma_misses_ > 1) {
      // At first the kernel may not have entered the GID yet.
      reach_.rdma = RdmaReachability{"", Describe(opened.error()), 0};
    }
  }
}

Result<std::optional<std::string>> RailProber::OpenEndpoint(const NetNs& host) {
  if (port_.device.empty()) return "this node has no PF for it";
  if (port_.pf_in_pods) return "its PF is given to pods as a whole";
  const int lower = port_.pf.empty() ? 0 : static_cast<int>(::if_nametoindex(port_.pf.c_str()));
  if (lower == 0) return "its PF is not on the host";
  const auto plan = PlanOf(lower);
  if (endpoint_ && endpoint_->plan() != plan) Close();
  if (!endpoint_) endpoint_.emplace(RH_TRY(ProbeEndpoint::Open(kernel_, host, plan)));
  auto why = endpoint_->Settle(kernel_);
  if (!why) {
    Close();
    return Fail(std::move(why.error()));
  }
  if (!*why && reach_.probe_address) RH_TRY(endpoint_->SetPermanentNeighbours(kernel_, PeerMacs()));
  if (!*why && reach_.probe_address && sockets_.empty()) RH_TRY(OpenSockets());
  return *why;
}

void RailProber::Prepare(const NetNs& host) {
  round_before_ = std::exchange(round_began_, EchoServer::Clock::now());
  bursts_.clear();
  auto why = OpenEndpoint(host);
  const bool was_ready = unready_.empty();
  unready_ = why ? why->value_or("") : "railheadd cannot probe: " + Describe(why.error());
  unsure_ = was_ready && !unready_.empty();
  if (unready_.empty()) return OpenRdma();
  // While another host has the probe address, this endpoint must not answer.
  rdma_.reset();
  sockets_.clear();
  echo_.Drop(port_.rail.name);
}

void RailProber::AddProbes(std::mt19937_64& random, std::vector<Probe>* probes) {
  if (sockets_.empty()) return;
  for (const std::size_t peer : peers_.Choose(static_cast<std::size_t>(settings_.peers), random)) {
    Burst burst{peer, probes->size(), 0, true};
    const UdpEnd to{peers_.At(peer).address, settings_.port};
    const auto add = [&](const UniqueFd& socket, int packet) {
      Probe& probe = probes->emplace_back();
      probe.socket = socket.get();
      probe.to = to;
      probe.session = peers_.Session(peer);
      probe.packet = static_cast<std::size_t>(packet);
    };
    for (int i = 0; i < PeerTable::kPerPath; ++i) {
      for (const UniqueFd& socket : sockets_) add(socket, 0);
    }
    add(sockets_.front(), endpoint_->mtu());
    if (peers_.LostLarge(peer)) {
      for (const int size : PeerTable::kSizes) {
        if (size < endpoint_->mtu()) add(sockets_.front(), size);
      }
    }
    burst.count = probes->size() - burst.first;
    bursts_.push_back(burst);
  }
}

BurstResult RailProber::ResultOf(const Burst& burst, std::span<const Probe> probes,
                                 const RdmaEcho::Count& rdma) {
  BurstResult result;
  const std::size_t paths = sockets_.size();
  const std::size_t small = paths * PeerTable::kPerPath;
  result.answered.resize(paths);
  std::vector<std::chrono::microseconds> times;
  for (std::size_t i = 0; i < burst.count; ++i) {
    const Probe& probe = probes[burst.first + i];
    if (!probe.too_large) ++result.sent;
    if (i == small) result.large_sent = !probe.too_large;
    if (!probe.rtt) continue;
    ++result.all_answered;
    result.heard = std::max(result.heard.value_or(0), probe.heard);
    if (i < small) {
      ++result.answered[i % paths];
      times.push_back(*probe.rtt);
    } else if (i == small) {
      result.large_answered = true;
    } else {
      result.passed = std::max(result.passed.value_or(0), static_cast<int>(probe.packet));
    }
  }
  result.rdma_sent = rdma.sent;
  result.rdma_answered = rdma.answered;
  reach_.rdma_probes += rdma.sent;
  reach_.rdma_answers += rdma.answered;
  reach_.probes += result.sent;
  reach_.answers += result.all_answered;
  if (!times.empty()) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    result.rtt = *middle;
  }
  const auto heard = echo_.LastProbeFrom(port_.rail.name, peers_.At(burst.peer).address);
  result.peer_was_heard = heard && *heard >= round_before_;
  return result;
}

void RailProber::SendRdmaProbes(std::span<const Probe> probes) {
  if (!rdma_) return;
  for (const Burst& burst : bursts_) {
    const auto own = probes.subspan(burst.first, burst.count);
    const auto answered =
        std::ranges::find_if(own, [](const Probe& probe) { return probe.rtt && probe.queue_pair != 0; });
    if (answered != own.end())
      rdma_->SendProbes(answered->session, {answered->to.address, answered->queue_pair});
  }
}

void RailProber::TakeAnswers(std::span<const Probe> probes, EchoServer::Clock::time_point until) {
  std::map<std::uint64_t, RdmaEcho::Count> rdma;
  if (rdma_) {
    rdma_->Await(until);
    rdma = rdma_->TakeCounts();
    const std::string why = rdma_->SendFailure();
    reach_.rdma = why.empty() ? RdmaReachability{rdma_->device(), "", rdma_->gid_index()}
                              : RdmaReachability{"", why, std::nullopt};
  }
  for (const Burst& burst : bursts_)
    (void)peers_.AddResult(burst.peer, ResultOf(burst, probes, rdma[peers_.Session(burst.peer)]),
                           Wall::now());
}

void RailProber::AskGateway() {
  if (!reach_.gateway) return;
  GatewayReachability& gateway = *reach_.gateway;
  const auto mac = unready_.empty() && endpoint_
                       ? endpoint_->ResolveRouter(kernel_, gateway.address, kGatewayBudget)
                       : Result<std::optional<MacAddress>>(std::nullopt);
  const bool answers = mac && mac->has_value();
  gateway_misses_ = answers ? 0 : gateway_misses_ + 1;
  if (answers) gateway.mac = **mac;
  if (answers == gateway.answers || (!answers && gateway_misses_ < kGatewayMisses)) return;
  gateway.answers = answers;
  gateway.since = Wall::now();
}

// Whether the port is in the VLAN of another rail, or in none. Causes are swapped cables, or a wrong
// configuration of the switch port.
std::string RailProber::ForeignVlan(const NetNs& host, const std::vector<RailPort>& others) const {
  const int lower = static_cast<int>(::if_nametoindex(port_.pf.c_str()));
  const auto answers = [&](std::optional<int> vlan, const IpAddress& gateway) {
    auto endpoint = ProbeEndpoint::Open(kernel_, host,
                                        {node_, port_.rail.name, lower, vlan, std::nullopt, std::nullopt, 0});
    if (!endpoint) return false;
    const auto why = endpoint->Settle(kernel_);
    if (!why || *why) return false;
    const auto mac = endpoint->ResolveRouter(kernel_, gateway, kForeignBudget);
    return mac && mac->has_value();
  };
  const int own = port_.rail.vlan.value_or(0);
  for (const RailPort& other : others) {
    const int vlan = other.rail.vlan.value_or(0);
    if (other.rail.name == port_.rail.name || vlan == own || !other.gateway) continue;
    if (answers(vlan > 0 ? std::optional(vlan) : std::nullopt, *other.gateway))
      return "in VLAN " + std::to_string(vlan) + " the gateway of " + other.rail.name + " answers";
  }
  if (own != 0 && reach_.gateway && answers(std::nullopt, reach_.gateway->address))
    return "its gateway answers without a VLAN";
  return "";
}

void RailProber::Judge(const NetNs& host, const std::vector<RailPort>& others) {
  // In the first round without an endpoint, its end may still have an effect: this one's, or an earlier
  // railheadd's.
  if (unsure_) return;
  if (!unready_.empty()) peers_.Forget(Wall::now());
  AskGateway();
  const ReachabilityState before = reach_.state;
  JudgeRail(peers_.Peers(), unready_, &reach_);
  if (reach_.state == ReachabilityState::kDead && unready_.empty()) {
    if (dead_rounds_++ % kForeignEvery == 0) foreign_ = ForeignVlan(host, others);
    if (!foreign_.empty()) reach_.because += "; " + foreign_;
  } else {
    dead_rounds_ = 0;
    foreign_.clear();
  }
  if (reach_.rdma && reach_.rdma->device.empty())
    reach_.because += (reach_.because.empty() ? "" : "; ") + ("no RDMA probes: " + reach_.rdma->because);
  if (reach_.state != before) reach_.since = Wall::now();
}

RailReachability RailProber::Report() const {
  RailReachability reach = reach_;
  reach.peers = peers_.Peers();
  return reach;
}

std::vector<IpAddress> RailProber::ReachablePeers(std::size_t most) const {
  std::vector<IpAddress> well;
  std::size_t next = 0;
  while (next < peers_.size() && peers_.At(next).node < node_) ++next;
  for (std::size_t i = 0; i < peers_.size() && well.size() < most; ++i) {
    const PeerReachability& peer = peers_.At((next + i) % peers_.size());
    if (peer.state == PeerState::kReachable) well.push_back(peer.address);
  }
  return well;
}

}  // namespace railhead::reachability
