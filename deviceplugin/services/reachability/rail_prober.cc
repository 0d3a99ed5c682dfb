#include "deviceplugin/services/reachability/rail_prober.h"

#include <net/if.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cni/fabric/fabric.h"
#include "deviceplugin/services/reachability/probe_endpoint.h"
#include "netns/base/text.h"

namespace railhead::reachability {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGatewayBudget{700};
constexpr milliseconds kForeignBudget{300};
// So many times in a row no answer of the gateway: a single ARP packet may be lost.
constexpr int kGatewayMisses = 2;
// A rail that is dead is looked at for others' VLANs in its first round, and in each of so many.
constexpr int kForeignEvery = 30;
// Of a peer: the shortest interval is a second, less a quarter, and its railheadd may have started anew.
constexpr int kVisitsInASecond = 3;
// Peers that a sentence names; the report has all of them.
constexpr std::size_t kNamed = 4;

std::string NamesOf(const std::vector<PeerReach>& peers, PeerState state) {
  std::vector<std::string> names;
  std::size_t more = 0;
  for (const PeerReach& peer : peers) {
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

void JudgeRail(const std::vector<PeerReach>& peers, const std::string& unready, RailReach* reach) {
  std::size_t judged = 0;
  std::size_t well = 0;
  std::size_t mute = 0;
  for (const PeerReach& peer : peers) {
    judged += peer.state == PeerState::kUnknown ? 0 : 1;
    well += peer.state == PeerState::kReachable ? 1 : 0;
    mute += peer.state == PeerState::kSilent || peer.state == PeerState::kOneWay ? 1 : 0;
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
    reach->state = ReachState::kDead;
    because = {unready};
  } else if (!has_gateway && judged == 0) {
    reach->state = ReachState::kUnknown;
    because = {peers.empty() ? "neither gateway nor other stations to probe" : "not probed often enough"};
  } else if (!gateway && mute == judged) {
    reach->state = ReachState::kDead;
  } else {
    reach->state =
        (!has_gateway || gateway) && well == judged ? ReachState::kReachable : ReachState::kDegraded;
  }
  reach->probed = unready.empty() && reach->state != ReachState::kUnknown;
  reach->because = Join(because, "; ");
}

RailProber::~RailProber() {
  Close();
}

void RailProber::Close() {
  // First: the kernel waits with soft RoCE's end, and so with that of its device, until nobody holds it.
  rdma_.reset();
  echo_.Drop(port_.rail.name);
  sockets_.clear();
  station_.reset();
}

void RailProber::Set(const RailPort& port, const ConnectivitySettings& settings) {
  const auto now = Wall::now();
  const bool same = settings_ == settings && port_.rail.subnet == port.rail.subnet &&
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
  const auto own = port.rail.stations.find(node_);
  reach_.station = own == port.rail.stations.end() ? std::nullopt : std::optional(own->second);
  if (!port.rail.gateway) {
    reach_.gateway.reset();
  } else if (!reach_.gateway || reach_.gateway->address != *port.rail.gateway) {
    reach_.gateway = GatewayReach{*port.rail.gateway, false, std::nullopt, now};
    gateway_misses_ = 0;
  }
  peers_.SetPeers(reach_.station ? port.rail.stations : std::map<std::string, IpAddress>{}, node_, now);
  TellPeers();
}

void RailProber::SetKeys(std::shared_ptr<const SharedKeys> keys) {
  keys_ = std::move(keys);
  if (rdma_) rdma_->SetKeys(keys_);
}

void RailProber::Restore(const RailReach& before) {
  if (before.device != reach_.device) return;
  peers_.Restore(before.peers);
  reach_.state = before.state;
  reach_.since = before.since;
  reach_.because = before.because;
  if (before.gateway && reach_.gateway && before.gateway->address == reach_.gateway->address)
    reach_.gateway = before.gateway;
}

StationPlan RailProber::PlanOf(int lower) const {
  StationPlan plan{node_,        port_.rail.name,    lower, port_.rail.vlan, port_.rail.mtu,
                   std::nullopt, port_.rail.vlan_qos};
  if (reach_.station && port_.rail.subnet)
    plan.address = IpPrefix{*reach_.station, port_.rail.subnet->length};
  return plan;
}

Result<void> RailProber::OpenSockets() {
  const auto open = [this](std::uint16_t port) {
    return OpenUdp(station_->ns(), station_->device(), {*reach_.station, port},
                   port_.rail.traffic_class.value_or(0));
  };
  const EchoServer::Rail rail{*port_.rail.subnet, PeerAddresses(),
                              kVisitsInASecond * PeerTable::MostOfVisit(settings_.paths)};
  echo_.Serve(port_.rail.name, rail, RH_TRY(open(settings_.port)));
  // The same ones in every round, so that a port's path stays the same.
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
  if (port_.rail.vlan.value_or(0) > 0) return macs;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const PeerReach& peer = peers_.At(i);
    macs[peer.address] = StationMac(peer.node, port_.rail.name);
  }
  return macs;
}

void RailProber::TellPeers() {
  const auto peers = PeerAddresses();
  if (rdma_) rdma_->SetPeers(peers);
  echo_.SetPeers(port_.rail.name, peers);
  if (rdma_) echo_.TellQueuePair(port_.rail.name, rdma_->own().number);
}

// Without RDMA the rest is probed all the same.
void RailProber::OpenRdma() {
  if (!settings_.rdma || !reach_.station) {
    reach_.rdma.reset();
    return;
  }
  if (rdma_ && rdma_->IsLost()) rdma_.reset();
  if (!rdma_) {
    const StationRdmaPlan plan{port_.rdma, port_.rail.soft_roce ? port_.pf : "",
                               port_.rail.traffic_class.value_or(0),
                               // What NICs put into the VLAN's tag.
                               port_.rail.service_level.value_or(port_.rail.vlan_qos)};
    // At once: nobody shall ask a queue pair that has gone, and say that it does not answer.
    auto opened = OpenStationRdma(kernel_, *station_, plan,
                                  [&echo = echo_, rail = port_.rail.name] { echo.TellQueuePair(rail, 0); });
    if (opened) {
      rdma_ = *std::move(opened);
      rdma_->SetKeys(keys_);
      rdma_misses_ = 0;
      TellPeers();
      reach_.rdma = RdmaReach{rdma_->device(), "", rdma_->gid_index()};
    } else if (++rdma_misses_ > 1) {
      // At first it may be that the kernel has not yet entered the GID.
      reach_.rdma = RdmaReach{"", Describe(opened.error()), 0};
    }
  }
}

// nullopt: probes can be sent.
Result<std::optional<std::string>> RailProber::Ready(const NetNs& host) {
  if (port_.device.empty()) return "this node has no PF for it";
  if (port_.whole) return "its PF is given to pods as a whole";
  const int lower = port_.pf.empty() ? 0 : static_cast<int>(::if_nametoindex(port_.pf.c_str()));
  if (lower == 0) return "its PF is not on the host";
  const auto plan = PlanOf(lower);
  if (station_ && station_->plan() != plan) Close();
  if (!station_) station_.emplace(RH_TRY(Station::Open(kernel_, host, plan)));
  auto why = station_->Settle(kernel_);
  if (!why) {
    Close();
    return Fail(std::move(why.error()));
  }
  if (!*why && reach_.station) RH_TRY(station_->FixNeighbours(kernel_, PeerMacs()));
  if (!*why && reach_.station && sockets_.empty()) RH_TRY(OpenSockets());
  return *why;
}

void RailProber::Prepare(const NetNs& host) {
  round_before_ = std::exchange(round_began_, EchoServer::Clock::now());
  aims_.clear();
  auto why = Ready(host);
  const bool was_ready = unready_.empty();
  unready_ = why ? why->value_or("") : "railheadd cannot probe: " + Describe(why.error());
  unsure_ = was_ready && !unready_.empty();
  if (unready_.empty()) return OpenRdma();
  // A station that another has the address of must not answer in its name.
  rdma_.reset();
  sockets_.clear();
  echo_.Drop(port_.rail.name);
}

void RailProber::AddShots(std::mt19937_64& random, std::vector<Shot>* shots) {
  if (sockets_.empty()) return;
  for (const std::size_t peer : peers_.Choose(static_cast<std::size_t>(settings_.peers), random)) {
    Aim aim{peer, shots->size(), 0, true};
    const UdpEnd to{peers_.At(peer).address, settings_.port};
    const auto add = [&](const UniqueFd& socket, int packet) {
      Shot& shot = shots->emplace_back();
      shot.socket = socket.get();
      shot.to = to;
      shot.session = peers_.Session(peer);
      shot.packet = static_cast<std::size_t>(packet);
    };
    for (int i = 0; i < PeerTable::kPerPath; ++i) {
      for (const UniqueFd& socket : sockets_) add(socket, 0);
    }
    add(sockets_.front(), station_->mtu());
    if (peers_.LostLarge(peer)) {
      for (const int size : PeerTable::kSizes) {
        if (size < station_->mtu()) add(sockets_.front(), size);
      }
    }
    aim.count = shots->size() - aim.first;
    aims_.push_back(aim);
  }
}

Visit RailProber::VisitOf(const Aim& aim, std::span<const Shot> shots, const RdmaEcho::Count& rdma) {
  Visit visit;
  const std::size_t paths = sockets_.size();
  const std::size_t small = paths * PeerTable::kPerPath;
  visit.answered.resize(paths);
  std::vector<std::chrono::microseconds> times;
  for (std::size_t i = 0; i < aim.count; ++i) {
    const Shot& shot = shots[aim.first + i];
    if (!shot.too_large) ++visit.sent;
    if (i == small) visit.large_sent = !shot.too_large;
    if (!shot.rtt) continue;
    ++visit.all_answered;
    visit.heard = std::max(visit.heard.value_or(0), shot.heard);
    if (i < small) {
      ++visit.answered[i % paths];
      times.push_back(*shot.rtt);
    } else if (i == small) {
      visit.large_answered = true;
    } else {
      visit.passed = std::max(visit.passed.value_or(0), static_cast<int>(shot.packet));
    }
  }
  visit.rdma_sent = rdma.sent;
  visit.rdma_answered = rdma.answered;
  reach_.rdma_probes += rdma.sent;
  reach_.rdma_answers += rdma.answered;
  reach_.probes += visit.sent;
  reach_.answers += visit.all_answered;
  if (!times.empty()) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    visit.rtt = *middle;
  }
  const auto heard = echo_.Heard(port_.rail.name, peers_.At(aim.peer).address);
  visit.peer_was_heard = heard && *heard >= round_before_;
  return visit;
}

void RailProber::Ask(std::span<const Shot> shots) {
  if (!rdma_) return;
  for (const Aim& aim : aims_) {
    const auto own = shots.subspan(aim.first, aim.count);
    const auto told =
        std::ranges::find_if(own, [](const Shot& shot) { return shot.rtt && shot.queue_pair != 0; });
    if (told != own.end()) rdma_->Ask(told->session, {told->to.address, told->queue_pair});
  }
}

void RailProber::Take(std::span<const Shot> shots, EchoServer::Clock::time_point until) {
  std::map<std::uint64_t, RdmaEcho::Count> rdma;
  if (rdma_) {
    rdma_->Await(until);
    rdma = rdma_->Take();
    const std::string why = rdma_->WhyMute();
    reach_.rdma =
        why.empty() ? RdmaReach{rdma_->device(), "", rdma_->gid_index()} : RdmaReach{"", why, std::nullopt};
  }
  for (const Aim& aim : aims_)
    (void)peers_.Take(aim.peer, VisitOf(aim, shots, rdma[peers_.Session(aim.peer)]), Wall::now());
}

void RailProber::AskGateway() {
  if (!reach_.gateway) return;
  GatewayReach& gateway = *reach_.gateway;
  const auto mac = unready_.empty() && station_ ? station_->Ask(kernel_, gateway.address, kGatewayBudget)
                                                : Result<std::optional<MacAddress>>(std::nullopt);
  const bool answers = mac && mac->has_value();
  gateway_misses_ = answers ? 0 : gateway_misses_ + 1;
  if (answers) gateway.mac = **mac;
  if (answers == gateway.answers || (!answers && gateway_misses_ < kGatewayMisses)) return;
  gateway.answers = answers;
  gateway.since = Wall::now();
}

// A port in the VLAN of another rail, or in none: cables that changed places, or a switch port that is set up
// wrongly.
std::string RailProber::ForeignVlan(const NetNs& host, const std::vector<RailPort>& others) const {
  const int lower = static_cast<int>(::if_nametoindex(port_.pf.c_str()));
  const auto answers = [&](std::optional<int> vlan, const IpAddress& gateway) {
    auto station =
        Station::Open(kernel_, host, {node_, port_.rail.name, lower, vlan, std::nullopt, std::nullopt, 0});
    if (!station) return false;
    const auto why = station->Settle(kernel_);
    if (!why || *why) return false;
    const auto mac = station->Ask(kernel_, gateway, kForeignBudget);
    return mac && mac->has_value();
  };
  const int own = port_.rail.vlan.value_or(0);
  for (const RailPort& other : others) {
    const int vlan = other.rail.vlan.value_or(0);
    if (other.rail.name == port_.rail.name || vlan == own || !other.rail.gateway) continue;
    if (answers(vlan > 0 ? std::optional(vlan) : std::nullopt, *other.rail.gateway))
      return "in VLAN " + std::to_string(vlan) + " the gateway of " + other.rail.name + " answers";
  }
  if (own != 0 && reach_.gateway && answers(std::nullopt, reach_.gateway->address))
    return "its gateway answers without a VLAN";
  return "";
}

void RailProber::Judge(const NetNs& host, const std::vector<RailPort>& others) {
  // What the first round without a station says may be the end of the last one, or of an earlier railheadd's.
  if (unsure_) return;
  if (!unready_.empty()) peers_.Forget(Wall::now());
  AskGateway();
  const ReachState before = reach_.state;
  JudgeRail(peers_.Reaches(), unready_, &reach_);
  if (reach_.state == ReachState::kDead && unready_.empty()) {
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

RailReach RailProber::Reach() const {
  RailReach reach = reach_;
  reach.peers = peers_.Reaches();
  return reach;
}

std::vector<IpAddress> RailProber::WellPeers(std::size_t most) const {
  std::vector<IpAddress> well;
  std::size_t next = 0;
  while (next < peers_.size() && peers_.At(next).node < node_) ++next;
  for (std::size_t i = 0; i < peers_.size() && well.size() < most; ++i) {
    const PeerReach& peer = peers_.At((next + i) % peers_.size());
    if (peer.state == PeerState::kReachable) well.push_back(peer.address);
  }
  return well;
}

}  // namespace railhead::reachability
