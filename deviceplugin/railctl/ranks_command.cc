// railctl ranks: hosts in an order in which ring neighbours hang on the same leaves.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/leaves/ranks.h"
#include "deviceplugin/leaves/report_list.h"
#include "deviceplugin/railctl/commands.h"
#include "deviceplugin/railctl/print.h"
#include "netns/base/files.h"

namespace railhead::railctl {
namespace {

// Of a few thousand nodes.
constexpr std::size_t kMaxInput = std::size_t{64} << 20;

struct RanksOptions {
  std::vector<std::string> files;
  std::string format = "hostfile";
  int slots = 0;
};

Result<std::string> ReadInput(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  auto text = RH_TRY(ReadFile(path, kMaxInput));
  if (!text) return Fail(ErrorCode::kNotFound, "reading " + path + ": no such file");
  return *std::move(text);
}

// Others would be more than a word of a hostfile's line.
bool IsHostName(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == ':');
  });
}

Result<std::vector<RankedHost>> ReadHosts(const std::vector<std::string>& files) {
  std::vector<RankedHost> hosts;
  std::set<std::string> names;
  for (const std::string& file : files) {
    const std::string text = RH_TRY(ReadInput(file));
    for (const LeafReport& report : RH_TRY(ParseLeafReports(text, file == "-" ? "standard input" : file))) {
      if (!IsHostName(report.node))
        return Fail(ErrorCode::kInvalid, file + ": '" + report.node + "' is no name of a host");
      if (!names.insert(report.node).second)
        return Fail(ErrorCode::kInvalid, file + ": node " + report.node + " is there twice");
      hosts.push_back(RankedHostOf(report));
    }
  }
  if (hosts.empty())
    return Fail(ErrorCode::kInvalid, "there is no node in it",
                "it is what `railctl leaves --json` prints on each node");
  return hosts;
}

nlohmann::json RanksAsJson(const std::vector<RankedHost>& before, const std::vector<RankedHost>& ordered) {
  nlohmann::json json = {{"edges", RingEdges(ordered.size())}, {"hosts", nlohmann::json::array()}};
  for (std::size_t rank = 0; rank < ordered.size(); ++rank)
    json["hosts"].push_back({{"rank", rank}, {"host", ordered[rank].name}, {"leaves", ordered[rank].leaves}});
  json["crossing"] = CountCrossed(ordered);
  json["crossingAsGiven"] = CountCrossed(before);
  return json;
}

void PrintHostfile(const std::vector<RankedHost>& hosts, int slots) {
  for (const RankedHost& host : hosts) {
    const std::string more = slots > 0 ? " slots=" + std::to_string(slots) : "";
    (void)std::printf("%s%s\n", host.name.c_str(), more.c_str());
  }
}

// Beside the hostfile, for people.
void TellCrossings(const std::vector<RankedHost>& before, const std::vector<RankedHost>& ordered) {
  const auto as_given = CountCrossed(before);
  for (const auto& [rail, crossed] : CountCrossed(ordered)) {
    (void)std::fprintf(stderr, "%s: %zu of %zu ring edges cross leaves; as given %zu\n", rail.c_str(),
                       crossed, RingEdges(ordered.size()), as_given.at(rail));
  }
}

int OrderHosts(const RanksOptions& options) {
  const auto hosts = ReadHosts(options.files);
  if (!hosts) return Complain(hosts.error(), kFailed);
  const auto ordered = OrderRanks(*hosts);
  if (options.format == "json") {
    PrintJson(RanksAsJson(*hosts, ordered));
    return kDone;
  }
  PrintHostfile(ordered, options.slots);
  TellCrossings(*hosts, ordered);
  return kDone;
}

}  // namespace

void AddRanksCommand(CLI::App* app, int* status) {
  auto options = std::make_shared<RanksOptions>();
  CLI::App* command =
      app->add_subcommand("ranks", "hosts in an order in which neighbours of a ring hang on the same leaves");
  command
      ->add_option(
          "FILE", options->files,
          "what `railctl leaves --json` printed on the nodes, one or more in a file; -: standard input")
      ->required();
  command
      ->add_option("--format", options->format, "hostfile (a host per line, in the order of ranks) or json")
      ->check(CLI::IsMember({"hostfile", "json"}))
      ->capture_default_str();
  command->add_option("--slots", options->slots, "ranks per host, said in the hostfile; 0: not said")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->footer(
      "The hosts' order goes to standard output, how many ring edges cross leaves to standard error. Exit "
      "status 1 when a file cannot be read.");
  command->callback([status, options] { *status = OrderHosts(*options); });
}

}  // namespace railhead::railctl
