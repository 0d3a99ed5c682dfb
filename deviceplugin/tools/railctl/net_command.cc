// railctl net: what the rails reach, of this node from railheadd's file or of many nodes from their reports.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/reachability/reach_report.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/print.h"
#include "deviceplugin/tools/reach_view/reach_faults.h"
#include "deviceplugin/tools/reach_view/reach_matrix.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

using Wall = std::chrono::system_clock;

struct NetOptions {
  std::vector<std::string> files;
  std::string rail;
  bool all = false;
  bool json = false;
};

struct GatheredReports {
  reach_view::ReachMatrixBuilder builder;
  std::vector<std::pair<std::string, Wall::time_point>> times;  // by node
  std::set<std::string> rails;
};

std::vector<std::string> NamesOfRails(const reachability::ReachReport& report) {
  std::vector<std::string> names;
  for (const reachability::RailReach& rail : report.rails) names.push_back(rail.rail);
  return names;
}

// On one line each: those of many nodes are put one after the other.
void PrintOnOneLine(const nlohmann::ordered_json& json) {
  (void)std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void KeepRail(const std::string& wanted, reachability::ReachReport* report) {
  if (wanted.empty()) return;
  std::erase_if(report->rails, [&](const reachability::RailReach& rail) { return rail.rail != wanted; });
  std::erase_if(report->pods, [&](const reachability::PodReach& pod) { return pod.rail != wanted; });
}

int ComplainOfRail(const std::string& rail, const std::vector<std::string>& rails) {
  return Complain({ErrorCode::kNotFound, "there is no rail '" + rail + "'", "rails: " + Join(rails, ", "), 0},
                  kFailed);
}

int ShowThisNode(const Root& root, const NetOptions& options) {
  auto read = reachability::ReadReachReport(root);
  if (!read) return Complain(read.error(), kFailed);
  if (!*read) {
    return Complain(
        {ErrorCode::kNotFound, "there is no " + reachability::ReachReportPath(root),
         "railheadd writes it when it runs with a fabric.json whose rails have stations: is it running?", 0},
        kFailed);
  }
  reachability::ReachReport report = **std::move(read);
  const bool old = Wall::now() - report.time > reachability::kReachReportLife;
  if (old)
    (void)std::fprintf(stderr, "railctl: as of %s: railheadd does not run\n",
                       FormatTime(report.time).c_str());
  if (!options.rail.empty() && report.Find(options.rail) == nullptr)
    return ComplainOfRail(options.rail, NamesOfRails(report));
  KeepRail(options.rail, &report);
  if (options.json) {
    PrintOnOneLine(ReachReportAsJson(report));
  } else {
    PrintReach(report, options.all);
  }
  return old || HasFault(report) ? kFailed : kDone;
}

Result<void> GatherFrom(std::istream& in, const std::string& what, const std::string& rail,
                        GatheredReports* all) {
  reach_view::ReachReportStream stream(in, what);
  while (auto report = RH_TRY(stream.Next())) {
    for (const std::string& name : NamesOfRails(*report)) all->rails.insert(name);
    KeepRail(rail, &*report);
    RH_TRY_WRAP(all->builder.Add(*report), what);
    all->times.emplace_back(report->node, report->time);
  }
  if (in.bad()) return Fail(ErrorCode::kIo, "reading " + what + " failed");
  return {};
}

Result<GatheredReports> Gather(const NetOptions& options) {
  GatheredReports all;
  for (const std::string& file : options.files) {
    if (file == "-") {
      RH_TRY(GatherFrom(std::cin, "standard input", options.rail, &all));
      continue;
    }
    std::ifstream in(file, std::ios::binary);
    if (!in) return Fail(SysError(errno, "reading " + file));
    RH_TRY(GatherFrom(in, file, options.rail, &all));
  }
  if (all.times.empty())
    return Fail(ErrorCode::kInvalid, "there is no node in it",
                "it is what `railctl net --json` prints on each node");
  return all;
}

// Reports are gathered at about one time: one that is much older than the newest is of a railheadd that
// ended.
bool TellOldReports(const GatheredReports& all) {
  const auto newest =
      std::ranges::max_element(all.times, [](const auto& a, const auto& b) { return a.second < b.second; });
  bool old = false;
  for (const auto& [node, time] : all.times) {
    if (newest->second - time <= reachability::kReachReportLife) continue;
    old = true;
    (void)std::fprintf(stderr, "railctl: %s: as of %s: railheadd does not run there\n", node.c_str(),
                       FormatTime(time).c_str());
  }
  return old;
}

nlohmann::json MatrixAsJson(const reach_view::ReachMatrix& matrix,
                            const std::vector<reach_view::ReachFault>& faults) {
  nlohmann::json json = {{"nodes", matrix.nodes},
                         {"marks", nlohmann::json::object()},
                         {"rails", nlohmann::json::array()},
                         {"faults", nlohmann::json::array()}};
  for (const char mark : std::string(".?~/m<X_-"))
    json["marks"][std::string(1, mark)] = reach_view::MeaningOf(mark);
  for (const reach_view::RailMatrix& rail : matrix.rails)
    json["rails"].push_back({{"rail", rail.rail}, {"rows", rail.rows}});
  for (const reach_view::ReachFault& fault : faults) json["faults"].push_back(ReachFaultAsJson(fault));
  return json;
}

// no-color.org
bool WantsColours() {
  const char* without = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (without == nullptr || *without == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

int ShowManyNodes(const NetOptions& options) {
  const auto all = Gather(options);
  if (!all) return Complain(all.error(), kFailed);
  if (!options.rail.empty() && !all->rails.contains(options.rail))
    return ComplainOfRail(options.rail, {all->rails.begin(), all->rails.end()});
  const bool old = TellOldReports(*all);
  const reach_view::ReachMatrix matrix = all->builder.Build();
  const std::vector<reach_view::ReachFault> faults = ExplainFaults(matrix);
  if (options.json) {
    PrintOnOneLine(MatrixAsJson(matrix, faults));
  } else {
    (void)std::fputs(ReachText(matrix, faults, {options.all, WantsColours()}).c_str(), stdout);
  }
  return old || !faults.empty() ? kFailed : kDone;
}

int ShowNet(const Root& root, const NetOptions& options) {
  return options.files.empty() ? ShowThisNode(root, options) : ShowManyNodes(options);
}

}  // namespace

void AddNetCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<NetOptions>();
  CLI::App* command = app->add_subcommand(
      "net", "what the rails reach: gateways, other nodes, pods; of many nodes as a matrix");
  command->add_option(
      "FILE", options->files,
      "what `railctl net --json` printed on the nodes, one or more in a file; -: standard input");
  command->add_option("--rail", options->rail, "only this rail");
  command->add_flag("--all", options->all,
                    "also what is well: all peers and pods; of FILEs, a row of its own for each node");
  command->add_flag("--json", options->json, "as JSON, on one line");
  command->footer(
      "Without FILEs: this node. With them: what is common to the faults, and who reaches whom on each rail. "
      "Exit status 1 when something is not reached, or railheadd does not run.");
  command->callback([&root, status, options] { *status = ShowNet(root, *options); });
}

namespace {

// Of a rail, unless all are asked for: a dead rail has a line for itself.
constexpr std::size_t kMostPeers = 16;

constexpr std::array kPeerStates = {reachability::PeerState::kReachable, reachability::PeerState::kLossy,
                                    reachability::PeerState::kPaths,     reachability::PeerState::kMtu,
                                    reachability::PeerState::kNoRdma,    reachability::PeerState::kOneWay,
                                    reachability::PeerState::kSilent,    reachability::PeerState::kUnknown};

bool IsIll(reachability::PeerState state) {
  return state > reachability::PeerState::kReachable;
}

bool IsIll(reachability::ReachState state) {
  return state > reachability::ReachState::kReachable;
}

std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string SpanSince(std::chrono::system_clock::time_point since) {
  if (since == std::chrono::system_clock::time_point()) return "-";
  return AgeOf(since);
}

std::string PeersOf(const reachability::RailReach& rail) {
  std::vector<std::string> parts;
  for (const reachability::PeerState state : kPeerStates) {
    const std::size_t count = rail.Count(state);
    if (count != 0) parts.push_back(std::to_string(count) + " " + std::string(WordOf(state)));
  }
  return OrDash(Join(parts, ", "));
}

std::string RttText(std::optional<std::chrono::microseconds> rtt) {
  return rtt ? std::to_string(rtt->count()) + "us" : "-";
}

// The median over the peers, as the metrics have it.
std::string RttOf(const reachability::RailReach& rail) {
  const auto spread = SpreadOfRtt(rail);
  return RttText(spread ? std::optional(spread->median) : std::nullopt);
}

std::string GatewayOf(const reachability::RailReach& rail) {
  if (!rail.gateway) return "-";
  return rail.gateway->answers ? "answers" : "silent";
}

// "mlx5_0[3]": device and index of the GID.
std::string RdmaOf(const reachability::RailReach& rail) {
  if (!rail.rdma || rail.rdma->device.empty()) return "-";
  return rail.rdma->device + "[" + std::to_string(rail.rdma->gid_index.value_or(0)) + "]";
}

void PrintReachedRails(const reachability::ReachReport& report) {
  const bool rdma = std::ranges::any_of(
      report.rails, [](const reachability::RailReach& rail) { return rail.rdma.has_value(); });
  std::vector<Row> rows = {{"RAIL", "PF", "STATE", "SINCE", "GATEWAY", "PEERS", "RDMA", "RTT", "BECAUSE"}};
  for (const reachability::RailReach& rail : report.rails) {
    rows.push_back({rail.rail, OrDash(rail.pf), std::string(WordOf(rail.state)), SpanSince(rail.since),
                    GatewayOf(rail), PeersOf(rail), RdmaOf(rail), RttOf(rail), rail.because});
  }
  constexpr std::ptrdiff_t kRdmaColumn = 6;
  if (!rdma) {
    for (Row& row : rows) row.erase(row.begin() + kRdmaColumn);
  }
  PrintTable(rows);
}

std::string AnsweredText(std::uint32_t answered, std::uint32_t sent) {
  return std::to_string(answered) + "/" + std::to_string(sent);
}

Row PeerRow(const reachability::RailReach& rail, const reachability::PeerReach& peer) {
  return {rail.rail,
          peer.node,
          peer.address.ToString(),
          std::string(WordOf(peer.state)),
          SpanSince(peer.since),
          AnsweredText(peer.answered, peer.sent),
          RttText(peer.rtt),
          peer.because};
}

void PrintReachedPeers(const reachability::ReachReport& report, bool all) {
  std::vector<Row> rows = {{"RAIL", "PEER", "ADDRESS", "STATE", "SINCE", "ANSWERED", "RTT", "BECAUSE"}};
  std::vector<std::string> left_out;
  for (const reachability::RailReach& rail : report.rails) {
    std::vector<const reachability::PeerReach*> shown;
    for (const reachability::PeerReach& peer : rail.peers) {
      if (all || IsIll(peer.state)) shown.push_back(&peer);
    }
    const std::size_t most = all ? shown.size() : std::min(shown.size(), kMostPeers);
    for (std::size_t i = 0; i < most; ++i) rows.push_back(PeerRow(rail, *shown[i]));
    if (most < shown.size())
      left_out.push_back(rail.rail + ": " + std::to_string(shown.size() - most) + " more peers (--all)");
  }
  if (rows.size() == 1) return;
  (void)std::printf("\n");
  PrintTable(rows);
  for (const std::string& line : left_out) (void)std::printf("%s\n", line.c_str());
}

void PrintReachedPods(const reachability::ReachReport& report, bool all) {
  std::vector<Row> rows = {{"POD", "INTERFACE", "RAIL", "DEVICE", "STATE", "SINCE", "ANSWERED", "BECAUSE"}};
  for (const reachability::PodReach& pod : report.pods) {
    if (!all && !IsIll(pod.state)) continue;
    rows.push_back({pod.Name(), pod.interface, pod.rail, OrDash(pod.device), std::string(WordOf(pod.state)),
                    SpanSince(pod.since), AnsweredText(pod.answered, pod.sent), pod.because});
  }
  if (rows.size() == 1) return;
  (void)std::printf("\n");
  PrintTable(rows);
}

}  // namespace

void PrintReach(const reachability::ReachReport& report, bool all) {
  PrintReachedRails(report);
  PrintReachedPeers(report, all);
  PrintReachedPods(report, all);
}

bool HasFault(const reachability::ReachReport& report) {
  const auto ill = [](const reachability::RailReach& rail) {
    return IsIll(rail.state) || (rail.gateway && !rail.gateway->answers) ||
           std::ranges::any_of(rail.peers,
                               [](const reachability::PeerReach& peer) { return IsIll(peer.state); });
  };
  return std::ranges::any_of(report.rails, ill) ||
         std::ranges::any_of(report.pods, [](const reachability::PodReach& pod) { return IsIll(pod.state); });
}

}  // namespace railhead::railctl
