// railctl net: what the rails reach, of this node from railheadd's file or of many nodes from their reports.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/services/health/health_json.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/net_tables.h"
#include "deviceplugin/tools/reach_view/reach_faults.h"
#include "deviceplugin/tools/reach_view/reach_stream.h"
#include "deviceplugin/tools/reach_view/reach_svg.h"
#include "deviceplugin/tools/reach_view/reach_text.h"
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
  std::string svg;
};

struct GatheredReports {
  ReachMatrixBuilder builder;
  std::vector<std::pair<std::string, Wall::time_point>> times;  // by node
  std::set<std::string> rails;
};

std::vector<std::string> NamesOfRails(const ReachReport& report) {
  std::vector<std::string> names;
  for (const RailReach& rail : report.rails) names.push_back(rail.rail);
  return names;
}

// On one line each: those of many nodes are put one after the other.
void PrintOnOneLine(const nlohmann::json& json) {
  (void)std::printf("%s\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void KeepRail(const std::string& wanted, ReachReport* report) {
  if (wanted.empty()) return;
  std::erase_if(report->rails, [&](const RailReach& rail) { return rail.rail != wanted; });
  std::erase_if(report->pods, [&](const PodReach& pod) { return pod.rail != wanted; });
}

int ComplainOfRail(const std::string& rail, const std::vector<std::string>& rails) {
  return Complain({ErrorCode::kNotFound, "there is no rail '" + rail + "'", "rails: " + Join(rails, ", "), 0},
                  kFailed);
}

int ShowThisNode(const Root& root, const NetOptions& options) {
  auto read = ReadReachReport(root);
  if (!read) return Complain(read.error(), kFailed);
  if (!*read) {
    return Complain(
        {ErrorCode::kNotFound, "there is no " + ReachReportPath(root),
         "railheadd writes it when it runs with a fabric.json whose rails have stations: is it running?", 0},
        kFailed);
  }
  ReachReport report = **std::move(read);
  const bool old = Wall::now() - report.time > kReachReportLife;
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
  ReachReportStream stream(in, what);
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
  const auto newest = std::max_element(all.times.begin(), all.times.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
  bool old = false;
  for (const auto& [node, time] : all.times) {
    if (newest->second - time <= kReachReportLife) continue;
    old = true;
    (void)std::fprintf(stderr, "railctl: %s: as of %s: railheadd does not run there\n", node.c_str(),
                       FormatTime(time).c_str());
  }
  return old;
}

nlohmann::json MatrixAsJson(const ReachMatrix& matrix, const std::vector<ReachFault>& faults) {
  nlohmann::json json = {{"nodes", matrix.nodes},
                         {"marks", nlohmann::json::object()},
                         {"rails", nlohmann::json::array()},
                         {"faults", nlohmann::json::array()}};
  for (const char mark : std::string(".?~/m<X_-")) json["marks"][std::string(1, mark)] = MeaningOf(mark);
  for (const RailMatrix& rail : matrix.rails)
    json["rails"].push_back({{"rail", rail.rail}, {"rows", rail.rows}});
  for (const ReachFault& fault : faults) json["faults"].push_back(ReachFaultAsJson(fault));
  return json;
}

// no-color.org
bool WantsColours() {
  const char* without = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (without == nullptr || *without == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

// "-" is standard output.
Result<void> WriteReachPicture(const std::string& picture, const std::string& path) {
  if (path != "-")
    return WithContext(WriteAtomic(path, picture, Sync::kVolatile, 0644), "writing the picture");
  (void)std::fputs(picture.c_str(), stdout);
  return {};
}

int ShowManyNodes(const NetOptions& options) {
  const auto all = Gather(options);
  if (!all) return Complain(all.error(), kFailed);
  if (!options.rail.empty() && !all->rails.contains(options.rail))
    return ComplainOfRail(options.rail, {all->rails.begin(), all->rails.end()});
  const bool old = TellOldReports(*all);
  const ReachMatrix matrix = all->builder.Build();
  const std::vector<ReachFault> faults = ExplainFaults(matrix);
  if (!options.svg.empty()) {
    if (const auto written = WriteReachPicture(DrawReach(matrix, faults), options.svg); !written)
      return Complain(written.error(), kFailed);
  }
  // A picture in a file leaves room for the text; on standard output it is alone.
  if (options.json && options.svg != "-") PrintOnOneLine(MatrixAsJson(matrix, faults));
  if (!options.json && options.svg != "-")
    (void)std::fputs(ReachText(matrix, faults, {options.all, WantsColours()}).c_str(), stdout);
  return old || !faults.empty() ? kFailed : kDone;
}

int ShowNet(const Root& root, const NetOptions& options) {
  if (options.files.empty() && !options.svg.empty()) {
    return Complain({ErrorCode::kInvalid, "--svg draws the matrix of FILEs, and there are none", "", 0},
                    kUsage);
  }
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
  command
      ->add_option("--svg", options->svg, "write a picture of the FILEs' matrix to OUT (-: standard output)")
      ->type_name("OUT");
  command->footer(
      "Without FILEs: this node. With them: what is common to the faults, and who reaches whom on each rail. "
      "Exit status 1 when something is not reached, or railheadd does not run.");
  command->callback([&root, status, options] { *status = ShowNet(root, *options); });
}

}  // namespace railhead::railctl
