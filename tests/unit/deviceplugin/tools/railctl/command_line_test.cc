// What all commands of railctl have in common: their help, the manual page, --rail and --watch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/support/eventually.h"
#include "tests/support/process.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

class RailctlHelpTest : public ::testing::Test {
 protected:
  RailctlHelpTest() {
    app_.formatter(help::MakeFormatter());
    app_.footer(help::AllStatuses());
    app_.require_subcommand(1);
    railctl::AddCommands(&app_, root_, &status_);
  }
  // Of commands that do something; not of those that only hold others.
  void VisitHelps(const std::function<void(const help::Command&, const std::string& text)>& visit) const {
    for (const help::Command& command : help::AllCommands(app_, "railctl")) {
      if (command.app->get_require_subcommand_min() > 0) continue;
      visit(command, app_.get_formatter()->make_help(command.app, command.path, CLI::AppFormatMode::Normal));
    }
  }

  int status_ = 0;
  Root root_;
  CLI::App app_{"railctl: what Railhead does on this node", "railctl"};
};

TEST_F(RailctlHelpTest, EachCommandIsInAGroup) {
  const std::set<std::string> groups = {"Look", "Act", "Prove", "Set up"};
  for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == "man-page") continue;
    EXPECT_TRUE(groups.contains(command->get_group())) << command->get_name() << ": " << command->get_group();
  }
}

TEST_F(RailctlHelpTest, EachCommandHasExamplesOfItselfAndItsExitStatuses) {
  std::size_t count = 0;
  VisitHelps([&](const help::Command& command, const std::string& text) {
    ++count;
    const std::size_t examples = text.find("\nExamples:\n");
    const std::size_t statuses = text.find("\nExit status:\n  0   ");
    ASSERT_NE(examples, std::string::npos) << command.path;
    ASSERT_NE(statuses, std::string::npos) << command.path;
    std::istringstream lines(text.substr(examples, statuses - examples));
    int of_itself = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  ") && !line.starts_with("   ") && line.find(command.path) != std::string::npos)
        ++of_itself;
    }
    EXPECT_GE(of_itself, 2) << command.path << text;
  });
  EXPECT_GE(count, 30U);
}

TEST_F(RailctlHelpTest, SummariesBeginWithACapitalLetter) {
  for (const help::Command& command : help::AllCommands(app_, "railctl")) {
    const std::string brief = help::Brief(*command.app);
    ASSERT_FALSE(brief.empty()) << command.path;
    EXPECT_TRUE(command.path == "railctl" || (std::isupper(static_cast<unsigned char>(brief[0])) != 0))
        << command.path << ": " << brief;
  }
}

TEST_F(RailctlHelpTest, AnUnknownCommandGetsTheNearest) {
  const auto check = [](std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), RAILCTL);
    const auto wrong = RunProcess(arguments, {}, "");
    EXPECT_EQ(wrong.status, kExitUsage) << message;
    EXPECT_EQ(wrong.err, message);
  };
  check({"stauts"}, "railctl: railctl has no command 'stauts'\n  did you mean railctl status?\n");
  check({"ipam", "lst"}, "railctl: railctl ipam has no command 'lst'\n  did you mean railctl ipam list?\n");
  check({"stauts", "--help"}, "railctl: railctl has no command 'stauts'\n  did you mean railctl status?\n");
  check({"pods"}, "railctl: railctl has no command 'pods'\n  all commands: railctl --help\n");
}

TEST_F(RailctlHelpTest, LinesFitATerminal) {
  const auto check = [](const std::string& name, const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(line.size(), help::kColumns) << name << ": " << line;
  };
  VisitHelps([&](const help::Command& command, const std::string& text) { check(command.path, text); });
  check("railctl", app_.help());
  check("--help-all", app_.help("", CLI::AppFormatMode::All));
}

TEST_F(RailctlHelpTest, TheManualPageHasEachCommand) {
  const auto page = RunProcess({RAILCTL, "man-page"}, {}, "");
  EXPECT_EQ(page.status, 0) << page.err;
  VisitHelps([&](const help::Command& command, const std::string&) {
    std::string path = command.path;
    for (std::size_t at = 0; (at = path.find('-', at)) != std::string::npos; at += 2) path.insert(at, "\\");
    EXPECT_NE(page.out.find("\n.SS " + path), std::string::npos) << command.path;
  });
  EXPECT_EQ(page.out.find("man\\-page"), std::string::npos);
  const auto completion = RunProcess({RAILCTL, "completion", "bash"}, {}, "");
  EXPECT_EQ(completion.out.find("man-page"), std::string::npos);
  EXPECT_NE(completion.out.find("'railctl ipam list') commands='' options='"), std::string::npos);
}

TEST_F(RailctlHelpTest, OptionsThatSeveralCommandsHaveAreTheSame) {
  const auto having = [&](const char* option) {
    std::set<std::string> paths;
    VisitHelps([&](const help::Command& command, const std::string&) {
      if (command.app->get_option_no_throw(option) != nullptr) paths.insert(command.path.substr(8));
    });
    return paths;
  };
  const std::set<std::string> reports = {"devices", "health",       "ipam list", "journal list",
                                         "lldp",    "reachability", "topology"};
  std::set<std::string> with_rail = reports;
  with_rail.insert({"nccl show", "rdma-test", "vfs apply", "vfs plan"});
  std::set<std::string> with_watch = reports;
  with_watch.insert({"describe", "status"});
  EXPECT_TRUE(std::ranges::includes(having("--rail"), with_rail));
  EXPECT_TRUE(std::ranges::includes(having("--watch"), with_watch));
}

class RailctlReportTest : public TwoRails {
 protected:
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric());
    const auto now = std::chrono::system_clock::now();
    const auto neighbor = [](const char* rail, const char* pf, const char* name) {
      return lldp::RailNeighbor{rail,      pf, name, true, {}, std::nullopt, {}, lldp::Cabling::kUnknown,
                                "no frame"};
    };
    ASSERT_TRUE(lldp::kLldpFile.Write(
        root_, {"gpu-001", now, {neighbor("rail0", kPf0, "pf0"), neighbor("rail1", kPf1, "pf1")}}));
    WriteHealth(true);
    Attach("c0", vfs0_[0], kPf0, "rail0");
    Attach("c1", vfs1_[0], kPf1, "rail1");
  }
  void WriteHealth(bool healthy) {
    const auto now = std::chrono::system_clock::now();
    ASSERT_TRUE(health::kHealthFile.Write(
        root_, {{{kPf0, false, kPf0, "pf0", healthy, now, {}}, {kPf1, false, kPf1, "pf1", true, now, {}}},
                {{now, kPf0, true, 0, true, {}, {}}, {now, kPf1, true, 0, true, {}, {}}}}));
  }
  void Attach(const std::string& container, const std::string& device, const char* pf, const char* rail) {
    JournalEntry entry;
    entry.key = {"roce", container, "net1"};
    entry.boot_id = *BootId(root_);
    entry.phase = Phase::kDone;
    AttachedDevice link;
    link.device = device;
    link.pf = pf;
    link.vf = 0;
    link.rail = rail;
    link.pod_name = "net1";
    entry.devices = {link};
    ASSERT_TRUE(Journal(root_).Write(entry));
  }
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  }
  Json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    return Json::parse(Run(std::move(arguments)).out, nullptr, false);
  }
};

TEST_F(RailctlReportTest, OnlyOneRail) {
  const Json health = RunJson({"health", "--rail", "rail1"});
  ASSERT_EQ(health["devices"].size(), 1U) << health;
  EXPECT_EQ(health["devices"][0]["device"], kPf1);
  const Json history = RunJson({"health", "--history", "--rail", "rail1"});
  ASSERT_EQ(history["changes"].size(), 1U) << history;
  EXPECT_EQ(history["changes"][0]["device"], kPf1);
  const Json lldp = RunJson({"lldp", "--rail", "rail0"});
  ASSERT_EQ(lldp["rails"].size(), 1U) << lldp;
  EXPECT_EQ(lldp["rails"][0]["rail"], "rail0");
  const Json journal = RunJson({"journal", "list", "--rail", "rail1"});
  ASSERT_EQ(journal["attachments"].size(), 1U) << journal;
  EXPECT_EQ(journal["attachments"][0]["container"], "c1");
  const Json topology = RunJson({"topology", "--rail", "rail1"});
  ASSERT_EQ(topology["nics"].size(), 1U) << topology;
  EXPECT_EQ(topology["nics"][0]["rail"], "rail1");
  EXPECT_EQ(topology["nicPaths"].size(), 0U);
  const std::string text = Run({"topology", "--rail", "rail1"}).out;
  EXPECT_EQ(text.find("rail0"), std::string::npos) << text;
}

// An unreadable entry may be of any rail: it is not hidden.
TEST_F(RailctlReportTest, AnUnreadableEntryIsOfEveryRail) {
  sysfs_.Write("/run/railhead/attachments/c2/roce@net1.json", "{");
  const auto list = Run({"journal", "list", "--rail", "rail1"});
  EXPECT_EQ(list.status, 1);
  EXPECT_NE(list.out.find("unreadable"), std::string::npos) << list.out;
}

TEST_F(RailctlReportTest, AnUnknownRailIsAnErrorWithTheKnownOnes) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"devices"},
                                                  {"health"},
                                                  {"lldp"},
                                                  {"topology"},
                                                  {"nccl", "show"},
                                                  {"ipam", "list"},
                                                  {"journal", "list"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--rail", "rail7"});
    const auto wrong = Run(arguments);
    EXPECT_EQ(wrong.status, 1) << command[0];
    EXPECT_NE(wrong.err.find("no such rail: 'rail7'\n  rails: rail0, rail1\n"), std::string::npos)
        << command[0] << wrong.err;
    EXPECT_EQ(wrong.out, "") << command[0];
  }
}

// A wrong path says that the file is missing, not what a file without the wanted part would lack.
TEST_F(RailctlReportTest, AMissingFabricIsNamed) {
  CLI::App app("railctl", "railctl");
  int status = 0;
  railctl::AddCommands(&app, root_, &status);
  std::set<std::string> tried;
  for (const help::Command& command : help::AllCommands(app, "railctl")) {
    const CLI::Option* fabric = command.app->get_option_no_throw("--fabric");
    if (fabric == nullptr || fabric->get_description().ends_with("none, if there is no such file")) continue;
    auto arguments = Split(command.path, ' ');
    arguments.erase(arguments.begin());
    if (command.app->get_option_no_throw("TARGET") != nullptr) arguments.emplace_back("rail0");
    arguments.insert(arguments.end(), {"--fabric", "/nowhere.json"});
    const auto ended = Run(arguments);
    const std::string said = ended.out + ended.err;
    EXPECT_NE(ended.status, 0) << command.path;
    EXPECT_NE(said.find("no such file: "), std::string::npos) << command.path << "\n" << said;
    EXPECT_NE(said.find("/nowhere.json"), std::string::npos) << command.path << "\n" << said;
    EXPECT_NE(said.find("railctl fabric suggest"), std::string::npos) << command.path << "\n" << said;
    tried.insert(command.path);
  }
  EXPECT_TRUE(tried.contains("railctl vfs plan") && tried.contains("railctl drain"));
}

class WatchTest : public RailctlReportTest {
 protected:
  std::unique_ptr<Process> Watch(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RAILCTL);
    arguments.emplace_back("--watch");
    ProcessSpec spec{.arguments = arguments};
    spec.environment = {"RAILHEAD_ROOT=" + sysfs_.directory()};
    spec.ends_with_test = true;
    return std::make_unique<Process>(spec);
  }
};

std::ptrdiff_t LinesOf(const std::string& text) {
  return std::ranges::count(text, '\n');
}

TEST_F(WatchTest, JsonHasALineForEachChangeUntilTheSignal) {
  const auto watch = Watch({"health", "-o", "json"});
  ASSERT_TRUE(Eventually([&] { return LinesOf(watch->out()) == 1; })) << watch->err();
  WriteHealth(false);
  ASSERT_TRUE(Eventually([&] { return LinesOf(watch->out()) == 2; })) << watch->out();
  watch->Signal(SIGINT);
  EXPECT_EQ(watch->Wait(), 0) << "also with a device that is Unhealthy";
  std::istringstream lines(watch->out());
  std::vector<Json> reports;
  for (std::string line; std::getline(lines, line);) reports.push_back(Json::parse(line, nullptr, false));
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0]["devices"][0]["state"], "Healthy");
  EXPECT_EQ(reports[1]["devices"][0]["state"], "Unhealthy");
}

TEST_F(WatchTest, DevicesShowADrain) {
  const auto watch = Watch({"devices", "-o", "json"});
  ASSERT_TRUE(Eventually([&] { return LinesOf(watch->out()) == 1; })) << watch->err();
  EXPECT_EQ(watch->out().find("drained"), std::string::npos) << watch->out();
  ASSERT_TRUE(health::AddDrain(root_, {kPf1, "rail1", "cable swap", std::chrono::system_clock::now()}));
  ASSERT_TRUE(Eventually([&] { return LinesOf(watch->out()) == 2; })) << watch->out();
  EXPECT_NE(watch->out().find("drained as rail1: cable swap"), std::string::npos) << watch->out();
  watch->Signal(SIGINT);
  EXPECT_EQ(watch->Wait(), 0);
}

TEST_F(WatchTest, EachReportIsShownUntilTheSignal) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"describe", "rail0"},
                                                  {"ipam", "list"},
                                                  {"journal", "list"},
                                                  {"lldp"},
                                                  {"status", "--http-address", ""},
                                                  {"topology"}}) {
    const auto watch = Watch(command);
    ASSERT_TRUE(Eventually([&] { return LinesOf(watch->out()) > 0; })) << command[0] << watch->err();
    watch->Signal(SIGINT);
    EXPECT_EQ(watch->Wait(), 0) << command[0] << watch->err();
  }
}

TEST_F(WatchTest, AMissingReportOfReachabilityIsAwaited) {
  const auto watch = Watch({"reachability"});
  ASSERT_TRUE(Eventually([&] { return watch->err().find("reachability.json") != std::string::npos; }))
      << watch->out();
  watch->Signal(SIGINT);
  EXPECT_EQ(watch->Wait(), 0);
}

TEST_F(WatchTest, WhatIsMissingMayCome) {
  ASSERT_TRUE(RemoveFile(sysfs_.directory() + "/run/railhead/health.json"));
  const auto watch = Watch({"health"});
  ASSERT_TRUE(Eventually([&] { return watch->err().find("health.json") != std::string::npos; }))
      << watch->out();
  WriteHealth(true);
  ASSERT_TRUE(Eventually([&] { return watch->out().find("DEVICE") != std::string::npos; })) << watch->err();
  EXPECT_EQ(watch->out().find('\x1b'), std::string::npos) << "this is no terminal";
  watch->Signal(SIGTERM);
  EXPECT_EQ(watch->Wait(), 0);
}

}  // namespace
}  // namespace railhead::testing
