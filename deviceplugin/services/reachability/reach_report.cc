#include "deviceplugin/services/reachability/reach_report.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/json/json_reader.h"

namespace railhead::reachability {
namespace {

using Json = nlohmann::json;
using Wall = std::chrono::system_clock;

constexpr const char* kReachDirectory = "/run/railhead";
constexpr std::int64_t kReachVersion = 1;
constexpr std::int64_t kLastReachSecond = 253'402'300'799;  // of year 9999
constexpr std::int64_t kLongestRtt = 3'600'000'000;         // an hour, in microseconds
constexpr std::int64_t kMostProbes = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kLastGidIndex = 65'535;
constexpr std::int64_t kMostCounted = std::numeric_limits<std::int64_t>::max();
constexpr std::array kPeerNames = {
    std::pair{"unknown", PeerState::kUnknown}, std::pair{"reachable", PeerState::kReachable},
    std::pair{"lossy", PeerState::kLossy},     std::pair{"paths", PeerState::kPaths},
    std::pair{"mtu", PeerState::kMtu},         std::pair{"noRdma", PeerState::kNoRdma},
    std::pair{"oneWay", PeerState::kOneWay},   std::pair{"silent", PeerState::kSilent}};
constexpr std::array kRailNames = {
    std::pair{"unknown", ReachState::kUnknown}, std::pair{"reachable", ReachState::kReachable},
    std::pair{"degraded", ReachState::kDegraded}, std::pair{"dead", ReachState::kDead}};

std::int64_t ReachSeconds(Wall::time_point time) {
  return std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
}

Wall::time_point ReachTime(std::int64_t seconds) {
  return Wall::time_point(std::chrono::seconds(seconds));
}

// Thousands of peers that are all well: what is as it mostly is, is left out. `rail_since` is what `since` is
// when it is not there.
Json PeerAsJson(const PeerReach& peer, Wall::time_point rail_since) {
  Json json = {{"node", peer.node}, {"address", peer.address.ToString()}};
  if (peer.state != PeerState::kReachable) json["state"] = NameOf(peer.state);
  if (ReachSeconds(peer.since) != ReachSeconds(rail_since)) json["since"] = ReachSeconds(peer.since);
  if (!peer.because.empty()) json["because"] = peer.because;
  if (peer.sent != 0) json["sent"] = peer.sent;
  if (peer.answered != peer.sent) json["answered"] = peer.answered;
  if (peer.lost_out != 0) json["lostOut"] = peer.lost_out;
  if (peer.lost_in != 0) json["lostIn"] = peer.lost_in;
  if (peer.rtt) json["rttUs"] = peer.rtt->count();
  if (peer.paths != 0) json["paths"] = peer.paths;
  if (peer.bad_paths != 0) json["badPaths"] = peer.bad_paths;
  if (peer.mtu) json["mtu"] = *peer.mtu;
  if (peer.rdma_sent != 0) json["rdmaSent"] = peer.rdma_sent;
  if (peer.rdma_answered != peer.rdma_sent) json["rdmaAnswered"] = peer.rdma_answered;
  return json;
}

Json GatewayAsJson(const GatewayReach& gateway) {
  Json json = {{"address", gateway.address.ToString()},
               {"answers", gateway.answers},
               {"since", ReachSeconds(gateway.since)}};
  if (gateway.mac) json["mac"] = gateway.mac->ToString();
  return json;
}

Json RdmaAsJson(const RdmaReach& rdma) {
  if (rdma.device.empty()) return {{"because", rdma.because}};
  return {{"device", rdma.device}, {"gidIndex", rdma.gid_index}};
}

Json RailAsJson(const RailReach& rail) {
  Json json = {{"rail", rail.rail},
               {"device", rail.device},
               {"pf", rail.pf},
               {"state", NameOf(rail.state)},
               {"since", ReachSeconds(rail.since)},
               {"probed", rail.probed},
               {"probes", rail.probes},
               {"answers", rail.answers},
               {"peers", Json::array()}};
  if (rail.rdma) json["rdma"] = RdmaAsJson(*rail.rdma);
  if (rail.rdma_probes > 0) json["rdmaProbes"] = rail.rdma_probes;
  if (rail.rdma_answers > 0) json["rdmaAnswers"] = rail.rdma_answers;
  if (rail.stale > 0) json["stale"] = rail.stale;
  if (!rail.because.empty()) json["because"] = rail.because;
  if (rail.station) json["station"] = rail.station->ToString();
  if (rail.gateway) json["gateway"] = GatewayAsJson(*rail.gateway);
  for (const PeerReach& peer : rail.peers) json["peers"].push_back(PeerAsJson(peer, rail.since));
  return json;
}

Json PodAsJson(const PodReach& pod) {
  Json json = {{"namespace", pod.pod_namespace},
               {"pod", pod.pod},
               {"interface", pod.interface},
               {"rail", pod.rail},
               {"device", pod.device},
               {"state", NameOf(pod.state)},
               {"since", ReachSeconds(pod.since)},
               {"sent", pod.sent},
               {"answered", pod.answered}};
  if (!pod.because.empty()) json["because"] = pod.because;
  if (pod.gateway_answers) json["gatewayAnswers"] = *pod.gateway_answers;
  for (const IpAddress& one : pod.stale) json["stale"].push_back(one.ToString());
  return json;
}

// That it is there is for the caller to see.
template <typename State, std::size_t kCount>
State ReadState(JsonReader& reader, const std::array<std::pair<const char*, State>, kCount>& names) {
  const std::string name = reader.String("state").value_or("");
  const auto* const found =
      std::ranges::find_if(names, [&](const auto& known) { return name == known.first; });
  if (found != names.end()) return found->second;
  reader.Fail("state", "'" + name + "' is not known");
  return {};
}

std::optional<IpAddress> ReadReachAddress(JsonReader& reader, const std::string& key) {
  const auto text = reader.String(key);
  if (!text) return std::nullopt;
  auto address = IpAddress::Parse(*text);
  if (!address) reader.Fail(key, "'" + *text + "' is no IP address");
  return address;
}

IpAddress RequiredReachAddress(JsonReader& reader) {
  if (!reader.Has("address")) reader.Fail("address", "is required");
  return ReadReachAddress(reader, "address").value_or(IpAddress());
}

Wall::time_point ReadSince(JsonReader& reader, Wall::time_point otherwise) {
  const auto seconds = reader.Int("since", 0, kLastReachSecond);
  return seconds ? ReachTime(*seconds) : otherwise;
}

double ReadShare(JsonReader& reader, const std::string& key) {
  const Json* value = reader.Raw(key);
  if (value == nullptr || value->is_null()) return 0;
  const double share = value->is_number() ? value->get<double>() : -1;
  if (share >= 0 && share <= 1) return share;
  reader.Fail(key, "is no number from 0 to 1");
  return 0;
}

// `part` is of `whole`, which was read before.
std::uint32_t ReadPart(JsonReader& reader, const std::string& part, std::uint32_t whole,
                       std::uint32_t otherwise) {
  return static_cast<std::uint32_t>(reader.Int(part, 0, whole).value_or(otherwise));
}

std::uint32_t ReadProbes(JsonReader& reader, const std::string& key) {
  return static_cast<std::uint32_t>(reader.Int(key, 0, kMostProbes).value_or(0));
}

PeerReach ReadPeer(JsonReader& reader, Wall::time_point rail_since) {
  PeerReach peer;
  peer.node = reader.RequiredString("node");
  peer.address = RequiredReachAddress(reader);
  peer.state = reader.Has("state") ? ReadState(reader, kPeerNames) : PeerState::kReachable;
  peer.since = ReadSince(reader, rail_since);
  peer.because = reader.String("because").value_or("");
  peer.sent = ReadProbes(reader, "sent");
  peer.answered = ReadPart(reader, "answered", peer.sent, peer.sent);
  peer.lost_out = ReadShare(reader, "lostOut");
  peer.lost_in = ReadShare(reader, "lostIn");
  if (const auto rtt = reader.Int("rttUs", 0, kLongestRtt)) peer.rtt = std::chrono::microseconds(*rtt);
  peer.paths = ReadProbes(reader, "paths");
  peer.bad_paths = ReadPart(reader, "badPaths", peer.paths, 0);
  if (const auto mtu = reader.Int("mtu", 0, 65535)) peer.mtu = static_cast<int>(*mtu);
  peer.rdma_sent = ReadProbes(reader, "rdmaSent");
  peer.rdma_answered = ReadPart(reader, "rdmaAnswered", peer.rdma_sent, peer.rdma_sent);
  return peer;
}

GatewayReach ReadGateway(JsonReader& reader) {
  GatewayReach gateway;
  gateway.address = RequiredReachAddress(reader);
  if (!reader.Has("answers")) reader.Fail("answers", "is required");
  gateway.answers = reader.Bool("answers").value_or(false);
  gateway.since = ReadSince(reader, {});
  if (const auto text = reader.String("mac")) {
    gateway.mac = MacAddress::Parse(*text);
    if (!gateway.mac) reader.Fail("mac", "'" + *text + "' is no Ethernet address");
  }
  return gateway;
}

RdmaReach ReadRdma(JsonReader& reader) {
  RdmaReach rdma;
  rdma.device = reader.String("device").value_or("");
  rdma.because = reader.String("because").value_or("");
  rdma.gid_index = static_cast<int>(reader.Int("gidIndex", 0, kLastGidIndex).value_or(0));
  return rdma;
}

RailReach ReadReachedRail(JsonReader& reader) {
  RailReach rail;
  rail.rail = reader.RequiredString("rail");
  rail.device = reader.String("device").value_or("");
  rail.pf = reader.String("pf").value_or("");
  rail.state = ReadState(reader, kRailNames);
  rail.since = ReadSince(reader, {});
  rail.probed = reader.Bool("probed").value_or(false);
  rail.because = reader.String("because").value_or("");
  rail.station = ReadReachAddress(reader, "station");
  if (auto gateway = reader.Object("gateway")) rail.gateway = ReadGateway(*gateway);
  rail.probes = static_cast<std::uint64_t>(reader.Int("probes", 0, kMostCounted).value_or(0));
  rail.answers = static_cast<std::uint64_t>(reader.Int("answers", 0, kMostCounted).value_or(0));
  if (auto rdma = reader.Object("rdma")) rail.rdma = ReadRdma(*rdma);
  rail.rdma_probes = static_cast<std::uint64_t>(reader.Int("rdmaProbes", 0, kMostCounted).value_or(0));
  rail.rdma_answers = static_cast<std::uint64_t>(reader.Int("rdmaAnswers", 0, kMostCounted).value_or(0));
  rail.stale = static_cast<std::uint64_t>(reader.Int("stale", 0, kMostCounted).value_or(0));
  std::set<std::string> nodes;
  for (JsonReader& peer : reader.Objects("peers")) {
    rail.peers.push_back(ReadPeer(peer, rail.since));
    const std::string& node = rail.peers.back().node;
    if (!nodes.insert(node).second) peer.Fail("node", "another peer is called '" + node + "'");
  }
  return rail;
}

PodReach ReadPod(JsonReader& reader) {
  PodReach pod;
  pod.pod_namespace = reader.String("namespace").value_or("");
  pod.pod = reader.RequiredString("pod");
  pod.interface = reader.RequiredString("interface");
  pod.rail = reader.RequiredString("rail");
  pod.device = reader.String("device").value_or("");
  pod.state = ReadState(reader, kRailNames);
  pod.since = ReadSince(reader, {});
  pod.because = reader.String("because").value_or("");
  pod.gateway_answers = reader.Bool("gatewayAnswers");
  pod.sent = ReadProbes(reader, "sent");
  pod.answered = ReadPart(reader, "answered", pod.sent, 0);
  for (const std::string& text : reader.Strings("stale").value_or(std::vector<std::string>{})) {
    const auto address = IpAddress::Parse(text);
    if (address) {
      pod.stale.push_back(*address);
    } else {
      reader.Fail("stale", "'" + text + "' is no IP address");
    }
  }
  return pod;
}

}  // namespace

std::string_view NameOf(PeerState state) {
  return kPeerNames.at(static_cast<std::size_t>(state)).first;
}

std::string_view NameOf(ReachState state) {
  return kRailNames.at(static_cast<std::size_t>(state)).first;
}

std::size_t RailReach::Count(PeerState wanted) const {
  return static_cast<std::size_t>(std::ranges::count(peers, wanted, &PeerReach::state));
}

const RailReach* ReachReport::Find(const std::string& rail) const {
  const auto found = std::ranges::find(rails, rail, &RailReach::rail);
  return found == rails.end() ? nullptr : &*found;
}

Json ReachReportAsJson(const ReachReport& report) {
  Json json = {{"version", kReachVersion},
               {"node", report.node},
               {"time", ReachSeconds(report.time)},
               {"rails", Json::array()},
               {"pods", Json::array()}};
  if (report.authentic) json["authentic"] = true;
  for (const RailReach& rail : report.rails) json["rails"].push_back(RailAsJson(rail));
  for (const PodReach& pod : report.pods) json["pods"].push_back(PodAsJson(pod));
  return json;
}

// Unknown keys are passed over: `railctl net FILES` may get those of a newer railheadd.
Result<ReachReport> ParseReachReport(std::string_view text, const std::string& what) {
  const auto document = RH_TRY(JsonDocument::Parse(text, what, kMaxReachReport));
  JsonReader reader = document.Root();
  (void)reader.Int("version", kReachVersion, kReachVersion);
  if (!reader.Has("version")) reader.Fail("version", "is required", "it is what `railctl net --json` prints");
  ReachReport report;
  report.node = reader.RequiredString("node");
  report.time = ReachTime(reader.Int("time", 0, kLastReachSecond).value_or(0));
  report.authentic = reader.Bool("authentic").value_or(false);
  for (JsonReader& rail : reader.Objects("rails")) {
    report.rails.push_back(ReadReachedRail(rail));
    const std::string& name = report.rails.back().rail;
    if (report.Find(name) != &report.rails.back()) rail.Fail("rail", "another rail is called '" + name + "'");
  }
  std::set<std::array<std::string, 3>> interfaces;
  for (JsonReader& pod : reader.Objects("pods")) {
    report.pods.push_back(ReadPod(pod));
    const PodReach& read = report.pods.back();
    if (!interfaces.insert({read.pod_namespace, read.pod, read.interface}).second)
      pod.Fail("interface", "this interface of " + read.Name() + " is there twice");
  }
  RH_TRY(reader.status());
  return report;
}

std::string ReachReportPath(const Root& root) {
  return paths::ReachReport(root);
}

Result<std::optional<ReachReport>> ReadReachReport(const Root& root) {
  const std::string path = ReachReportPath(root);
  const auto text = RH_TRY(ReadFile(path, kMaxReachReport));
  if (!text) return std::nullopt;
  return RH_TRY(ParseReachReport(*text, path));
}

Result<void> WriteReachReport(const Root& root, const ReachReport& report) {
  // Names of interfaces are any bytes.
  const std::string text =
      ReachReportAsJson(report).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  constexpr const char* kWhat = "writing down what the rails reach";
  RH_TRY_WRAP(MakeStateFolder(root, root.Path(kReachDirectory)), kWhat);
  RH_TRY_WRAP(WriteAtomic(ReachReportPath(root), text, Sync::kVolatile, 0644), kWhat);
  return {};
}

std::optional<RttSpread> SpreadOfRtt(const RailReach& rail) {
  std::vector<std::chrono::microseconds> times;
  for (const PeerReach& peer : rail.peers) {
    if (peer.state == PeerState::kReachable && peer.rtt) times.push_back(*peer.rtt);
  }
  if (times.empty()) return std::nullopt;
  std::ranges::sort(times);
  // Of an even number the smaller one: a time that was measured.
  return RttSpread{times[(times.size() - 1) / 2], times.back()};
}

}  // namespace railhead::reachability
