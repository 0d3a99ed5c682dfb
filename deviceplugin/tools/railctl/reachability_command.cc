// railctl reachability: what the rails reach, of this node from railheadd's file or of many nodes from their
// reports.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/rail_filter.h"
#include "deviceplugin/tools/reachability_view/reachability_faults.h"
#include "deviceplugin/tools/reachability_view/reachability_matrix.h"
#include "deviceplugin/tools/reachability_view/reachability_report_stream.h"
#include "deviceplugin/tools/reachability_view/reachability_text.h"
#include "netns/base/root.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

using Wall = std::chrono::system_clock;

struct ReachabilityOptions {
  std::vector<std::string> files;
  RailFilter rail;
  bool all = false;
  Output output;
};

// The peer of a rail.
struct RailPeer {
  std::string rail;
  const reachability::PeerReachability* peer = nullptr;

  static void List(auto& f) {
    f("rail", &RailPeer::rail, {.column = "RAIL"});
    f.Part(&RailPeer::peer);
  }
};

// Per rail, without --all: a dead rail has its own line.
constexpr std::size_t kMostPeers = 16;

bool IsFaulty(reachability::PeerState state) {
  return state > reachability::PeerState::kReachable;
}

bool IsFaulty(reachability::ReachabilityState state) {
  return state > reachability::ReachabilityState::kReachable;
}

// After a blank line, if there is anything.
template <typename T>
void PrintFurther(const Output& output, const std::vector<T>& list) {
  if (list.empty()) return;
  (void)std::printf("\n");
  output.PrintTable(list);
}

void PrintPeers(const Output& output, const reachability::ReachabilityReport& report, bool all) {
  std::vector<RailPeer> peers;
  std::string left_out;
  for (const reachability::RailReachability& rail : report.rails) {
    std::vector<RailPeer> shown;
    for (const reachability::PeerReachability& peer : rail.peers) {
      if (all || IsFaulty(peer.state)) shown.push_back({rail.rail, &peer});
    }
    const std::size_t most = all ? shown.size() : std::min(shown.size(), kMostPeers);
    if (most < shown.size())
      left_out += rail.rail + ": " + std::to_string(shown.size() - most) + " more peers (--all)\n";
    peers.insert(peers.end(), shown.begin(), shown.begin() + static_cast<std::ptrdiff_t>(most));
  }
  PrintFurther(output, peers);
  (void)std::fputs(left_out.c_str(), stdout);
}

// Rails; then the faulty peers and pods, or all of them.
void PrintReachability(const Output& output, const reachability::ReachabilityReport& report, bool all) {
  output.PrintTable(report.rails);
  PrintPeers(output, report, all);
  std::vector<reachability::PodReachability> pods = report.pods;
  std::erase_if(pods, [&](const reachability::PodReachability& pod) { return !all && !IsFaulty(pod.state); });
  PrintFurther(output, pods);
}

// Whether a rail, gateway, peer or pod is known to be faulty.
bool HasFault(const reachability::ReachabilityReport& report) {
  const auto is_faulty = [](const reachability::RailReachability& rail) {
    return IsFaulty(rail.state) || (rail.gateway && !rail.gateway->answers) ||
           std::ranges::any_of(
               rail.peers, [](const reachability::PeerReachability& peer) { return IsFaulty(peer.state); });
  };
  return std::ranges::any_of(report.rails, is_faulty) ||
         std::ranges::any_of(report.pods,
                             [](const reachability::PodReachability& pod) { return IsFaulty(pod.state); });
}

// The reports of many nodes: a row of marks for each node and rail.
struct MatrixReport {
  std::vector<std::string> nodes;
  std::map<std::string, std::string> marks;  // and their meanings
  std::vector<reachability_view::RailMatrix> rails;
  std::vector<reachability_view::ReachabilityFault> faults;

  static void List(auto& f) {
    f("nodes", &MatrixReport::nodes);
    f("marks", &MatrixReport::marks);
    f("rails", &MatrixReport::rails);
    f("faults", &MatrixReport::faults);
  }
};

constexpr bool kOneLine = true;

struct ReportSet {
  reachability_view::ReachabilityMatrixBuilder builder;
  std::vector<std::pair<std::string, Wall::time_point>> times;  // by node
  std::set<std::string> rails;
};

std::vector<std::string> NamesOfRails(const reachability::ReachabilityReport& report) {
  std::vector<std::string> names;
  for (const reachability::RailReachability& rail : report.rails) names.push_back(rail.rail);
  return names;
}

void KeepRail(const RailFilter& filter, reachability::ReachabilityReport* report) {
  filter.Keep(&report->rails, &reachability::RailReachability::rail);
  filter.Keep(&report->pods, &reachability::PodReachability::rail);
}

int ShowThisNode(const Root& root, const ReachabilityOptions& options) {
  auto read = reachability::ReadReachabilityReport(root);
  if (!read) return Complain(read.error(), kFailed);
  if (!*read) return Complain(reachability::kReachabilityFile.Missing(root), kFailed);
  reachability::ReachabilityReport report = **std::move(read);
  const bool old = reachability::kReachabilityFile.IsOld(report, Wall::now());
  if (old)
    (void)std::fprintf(stderr, "railctl: as of %s: railheadd does not run\n",
                       FormatTime(report.time).c_str());
  if (const auto there = options.rail.CheckAmong(NamesOfRails(report)); !there)
    return Complain(there.error(), kFailed);
  KeepRail(options.rail, &report);
  // On one line: those of many nodes are put one after the other.
  if (options.output.is_text()) {
    PrintReachability(options.output, report, options.all);
  } else {
    options.output.PrintData(ToJson(WithoutCommonTimes(report)), kOneLine);
  }
  return old || HasFault(report) ? kFailed : kDone;
}

Result<void> GatherFrom(std::istream& in, const std::string& what, const RailFilter& rail, ReportSet* all) {
  reachability_view::ReachabilityReportStream stream(in, what);
  while (auto report = RH_TRY(stream.Next())) {
    for (const std::string& name : NamesOfRails(*report)) all->rails.insert(name);
    KeepRail(rail, &*report);
    RH_TRY_WRAP(all->builder.Add(*report), what);
    all->times.emplace_back(report->node, report->time);
  }
  return {};
}

Result<ReportSet> Gather(const ReachabilityOptions& options) {
  ReportSet all;
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
    return Fail(ErrorCode::kInvalid, "the files have no report",
                "each has to be what `railctl reachability -o json` printed on a node");
  return all;
}

// Reports are gathered at about the same time. One that is much older than the newest comes from a railheadd
// that has ended.
bool WarnOfOldReports(const ReportSet& all) {
  const auto newest =
      std::ranges::max_element(all.times, [](const auto& a, const auto& b) { return a.second < b.second; });
  bool old = false;
  for (const auto& [node, time] : all.times) {
    if (newest->second - time <= reachability::kReachabilityFile.life) continue;
    old = true;
    (void)std::fprintf(stderr, "railctl: %s: as of %s: railheadd does not run there\n", node.c_str(),
                       FormatTime(time).c_str());
  }
  return old;
}

MatrixReport ReportOf(const reachability_view::ReachabilityMatrix& matrix,
                      std::vector<reachability_view::ReachabilityFault> faults) {
  MatrixReport report{matrix.nodes, {}, matrix.rails, std::move(faults)};
  for (const char mark : std::string(".?~/m<X_-")) report.marks[{mark}] = reachability_view::MeaningOf(mark);
  return report;
}

int ShowManyNodes(const ReachabilityOptions& options) {
  const auto all = Gather(options);
  if (!all) return Complain(all.error(), kFailed);
  if (const auto there = options.rail.CheckAmong({all->rails.begin(), all->rails.end()}); !there)
    return Complain(there.error(), kFailed);
  const bool old = WarnOfOldReports(*all);
  const reachability_view::ReachabilityMatrix matrix = all->builder.Build();
  const std::vector<reachability_view::ReachabilityFault> faults = ExplainFaults(matrix);
  if (options.output.is_text()) {
    (void)std::fputs(ReachabilityText(matrix, faults, {options.all, WantsColours()}).c_str(), stdout);
  } else {
    options.output.PrintData(ToJson(ReportOf(matrix, faults)), kOneLine);
  }
  return old || !faults.empty() ? kFailed : kDone;
}

int ShowReachability(const Root& root, const ReachabilityOptions& options) {
  return options.files.empty() ? ShowThisNode(root, options) : ShowManyNodes(options);
}

}  // namespace

void AddReachabilityCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<ReachabilityOptions>();
  CLI::App* command = app->add_subcommand(
      "reachability", "Show what the rails reach: gateways, other nodes and pods; of many nodes as a matrix");
  auto* files = command->add_option(
      "FILE", options->files,
      "what `railctl reachability -o json` printed on the nodes, one or more in a file; -: standard input");
  options->rail.AddTo(command);
  command->add_flag("--all", options->all, "also reachable peers and pods; of FILEs, a row for each node");
  command->alias("net");
  options->output.AddTo(command);
  options->output.AddWatchTo(command)->excludes(files);
  help::Set(
      command,
      {.more = "Without FILEs it reports this node. With them it reports what the faults have in common, and "
               "which node reaches which.",
       .examples = {{"railctl reachability --all", "gateways, and every peer and pod"},
                    {"railctl reachability gpu-*.json", "the reports of many nodes, as a matrix"}},
       .columns = "of rails " + ColumnsOf<reachability::RailReachability>() + "; of peers " +
                  ColumnsOf<RailPeer>() + "; of pods " + ColumnsOf<reachability::PodReachability>(),
       .statuses = {{kFailed, "something is not reached, or railheadd does not run"}}});
  command->callback([&root, status, options] {
    *status = options->output.Watched([&] { return ShowReachability(root, *options); });
  });
}

}  // namespace railhead::railctl
