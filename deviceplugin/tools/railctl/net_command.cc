// railctl net: what the rails reach, of this node from railheadd's file or of many nodes from their reports.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
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
#include "deviceplugin/services/reachability/reach_report.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/output.h"
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
  Output output;
};

// The peer of a rail.
struct ReachedPeer {
  std::string rail;
  const reachability::PeerReach* peer = nullptr;

  static void List(auto& f) {
    f("rail", &ReachedPeer::rail, {.column = "RAIL"});
    f.Part(&ReachedPeer::peer);
  }
};

// What many nodes say. A row of marks for each node and rail.
struct MatrixReport {
  std::vector<std::string> nodes;
  std::map<std::string, std::string> marks;  // and what they mean
  std::vector<reach_view::RailMatrix> rails;
  std::vector<reach_view::ReachFault> faults;

  static void List(auto& f) {
    f("nodes", &MatrixReport::nodes);
    f("marks", &MatrixReport::marks);
    f("rails", &MatrixReport::rails);
    f("faults", &MatrixReport::faults);
  }
};

constexpr bool kOneLine = true;

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
  if (!*read) return Complain(reachability::kReachFile.Missing(root), kFailed);
  reachability::ReachReport report = **std::move(read);
  const bool old = reachability::kReachFile.IsOld(report, Wall::now());
  if (old)
    (void)std::fprintf(stderr, "railctl: as of %s: railheadd does not run\n",
                       FormatTime(report.time).c_str());
  if (!options.rail.empty() && report.Find(options.rail) == nullptr)
    return ComplainOfRail(options.rail, NamesOfRails(report));
  KeepRail(options.rail, &report);
  // On one line: those of many nodes are put one after the other.
  if (options.output.is_text()) {
    PrintReach(options.output, report, options.all);
  } else {
    options.output.PrintData(ToJson(WithoutCommonTimes(report)), kOneLine);
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
                "it is what `railctl net -o json` prints on each node");
  return all;
}

// Reports are gathered at about one time: one that is much older than the newest is of a railheadd that
// ended.
bool TellOldReports(const GatheredReports& all) {
  const auto newest =
      std::ranges::max_element(all.times, [](const auto& a, const auto& b) { return a.second < b.second; });
  bool old = false;
  for (const auto& [node, time] : all.times) {
    if (newest->second - time <= reachability::kReachFile.life) continue;
    old = true;
    (void)std::fprintf(stderr, "railctl: %s: as of %s: railheadd does not run there\n", node.c_str(),
                       FormatTime(time).c_str());
  }
  return old;
}

MatrixReport ReportOf(const reach_view::ReachMatrix& matrix, std::vector<reach_view::ReachFault> faults) {
  MatrixReport report{matrix.nodes, {}, matrix.rails, std::move(faults)};
  for (const char mark : std::string(".?~/m<X_-")) report.marks[{mark}] = reach_view::MeaningOf(mark);
  return report;
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
  if (options.output.is_text()) {
    (void)std::fputs(ReachText(matrix, faults, {options.all, WantsColours()}).c_str(), stdout);
  } else {
    options.output.PrintData(ToJson(ReportOf(matrix, faults)), kOneLine);
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
      "what `railctl net -o json` printed on the nodes, one or more in a file; -: standard input");
  command->add_option("--rail", options->rail, "only this rail");
  command->add_flag("--all", options->all,
                    "also what is well: all peers and pods; of FILEs, a row of its own for each node");
  options->output.AddTo(command);
  command->footer(
      "Without FILEs: this node. With them: what is common to the faults, and who reaches whom on each rail. "
      "Exit status 1 when something is not reached, or railheadd does not run.");
  command->callback([&root, status, options] { *status = ShowNet(root, *options); });
}

namespace {

// Of a rail, unless all are asked for: a dead rail has a line for itself.
constexpr std::size_t kMostPeers = 16;

bool IsIll(reachability::PeerState state) {
  return state > reachability::PeerState::kReachable;
}

bool IsIll(reachability::ReachState state) {
  return state > reachability::ReachState::kReachable;
}

// After a blank line, if there is anything.
template <typename T>
void PrintFurther(const Output& output, const std::vector<T>& list) {
  if (list.empty()) return;
  (void)std::printf("\n");
  output.PrintTable(list);
}

void PrintReachedPeers(const Output& output, const reachability::ReachReport& report, bool all) {
  std::vector<ReachedPeer> peers;
  std::string left_out;
  for (const reachability::RailReach& rail : report.rails) {
    std::vector<ReachedPeer> shown;
    for (const reachability::PeerReach& peer : rail.peers) {
      if (all || IsIll(peer.state)) shown.push_back({rail.rail, &peer});
    }
    const std::size_t most = all ? shown.size() : std::min(shown.size(), kMostPeers);
    if (most < shown.size())
      left_out += rail.rail + ": " + std::to_string(shown.size() - most) + " more peers (--all)\n";
    peers.insert(peers.end(), shown.begin(), shown.begin() + static_cast<std::ptrdiff_t>(most));
  }
  PrintFurther(output, peers);
  (void)std::fputs(left_out.c_str(), stdout);
}

}  // namespace

void PrintReach(const Output& output, const reachability::ReachReport& report, bool all) {
  output.PrintTable(report.rails);
  PrintReachedPeers(output, report, all);
  std::vector<reachability::PodReach> pods = report.pods;
  std::erase_if(pods, [&](const reachability::PodReach& pod) { return !all && !IsIll(pod.state); });
  PrintFurther(output, pods);
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
