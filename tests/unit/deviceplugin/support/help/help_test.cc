// Help texts and the manual page of a program with commands.
#include "deviceplugin/support/help/help.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace railhead::testing {
namespace {

std::size_t LongestLine(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(WrappedTest, LinesAreNotLongerThanTheWidth) {
  EXPECT_EQ(help::Wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(help::Wrapped("one two three", 8, "  "), "one two\n  three");
  EXPECT_EQ(help::Wrapped("  one   two ", 80), "one two");
  EXPECT_EQ(help::Wrapped("a-word-longer-than-the-width b", 5), "a-word-longer-than-the-width\nb");
  EXPECT_EQ(help::Wrapped("", 80), "");
}

class HelpTest : public ::testing::Test {
 protected:
  HelpTest() {
    app_.formatter(help::MakeFormatter());
    app_.footer(help::AllStatuses());
    app_.require_subcommand(1);
    CLI::App* drain = app_.add_subcommand("drain", "take a rail, PF or VF out of use")->group("Act");
    drain->add_option("TARGET", target_,
                      "rail0, its PF's network device, or a PCI address: 0000:43:10.0; " +
                          std::string("the longer this is, the more lines it needs"));
    help::Set(drain, {.more = "Running pods keep it.",
                      .examples = {{"tool drain rail0", "new pods do not get it"}},
                      .columns = "DEVICE, SINCE; with -o wide: NAME",
                      .notes = "Run it as root.",
                      .statuses = {{kExitFailed, "it is not drained"}, {kExitBadConfig, "-bad"}}});
    CLI::App* list = app_.add_subcommand("list", "several lists")->group("Look");
    list->require_subcommand(1);
    list->add_subcommand("all", ".dots and \\slashes");
    app_.add_subcommand("secret", "for packages")->group("");
  }

  std::string target_;
  CLI::App app_{"tool: does things", "tool"};
};

TEST_F(HelpTest, OfACommand) {
  const std::string text = app_.get_subcommand("drain")->help("tool");
  EXPECT_EQ(text.rfind("take a rail, PF or VF out of use. Running pods keep it.\nUsage: tool drain ", 0), 0U)
      << text;
  EXPECT_LE(LongestLine(text), help::kColumns) << text;
  EXPECT_NE(text.find("\n"
                      "Examples:\n"
                      "  tool drain rail0\n"
                      "      new pods do not get it\n"
                      "\n"
                      "Columns: DEVICE, SINCE; with -o wide: NAME\n"
                      "\n"
                      "Run it as root.\n"
                      "\n"
                      "Exit status:\n"
                      "  0   done\n"
                      "  1   it is not drained\n"
                      "  2   wrong command line\n"
                      "  3   -bad\n"),
            std::string::npos)
      << text;
}

TEST_F(HelpTest, OfTheProgramHasTheGroups) {
  const std::string text = app_.help();
  const auto act = text.find("\nAct:\n  drain                       take a rail, PF or VF out of use\n");
  const auto look = text.find("\nLook:\n  list                        several lists\n");
  EXPECT_NE(act, std::string::npos) << text;
  EXPECT_NE(look, std::string::npos) << text;
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
  EXPECT_EQ(text.find("Running pods keep it"), std::string::npos) << "a list has the first line only";
  for (const ExitMeaning& one : kExitMeanings)
    EXPECT_NE(text.find("\n  " + std::to_string(one.status) + "   "), std::string::npos) << one.status;
  EXPECT_LE(LongestLine(text), help::kColumns) << text;
}

TEST_F(HelpTest, OfAllCommandsHasEachOnce) {
  const std::string all = app_.help("", CLI::AppFormatMode::All);
  for (const char* usage :
       {"Usage: tool [OPTIONS] SUBCOMMAND\n", "Usage: tool drain ", "Usage: tool list all "}) {
    const auto at = all.find(usage);
    ASSERT_NE(at, std::string::npos) << usage << all;
    EXPECT_EQ(all.find(usage, at + 1), std::string::npos) << usage;
  }
  EXPECT_EQ(all.find("Usage: tool secret"), std::string::npos);
}

TEST_F(HelpTest, CommandsInTheOrderOfHelp) {
  std::vector<std::string> paths;
  for (const help::Command& command : help::AllCommands(app_, "tool")) paths.push_back(command.path);
  EXPECT_EQ(paths, (std::vector<std::string>{"tool", "tool drain", "tool list", "tool list all"}));
}

TEST_F(HelpTest, TheManualPageSaysWhatHelpSays) {
  const std::string page = help::ManPage(app_, "tool", "1.2.3");
  EXPECT_EQ(page.rfind(".TH TOOL 8 \"\" \"tool 1.2.3\" Railhead\n.SH NAME\ntool \\- does things\n", 0), 0U)
      << page;
  for (const char* text : {".SS tool drain [TARGET]\n", "\n.B tool drain rail0\nnew pods do not get it\n",
                           "\n.B 1\nit is not drained\n", "\n.B 3\n\\-bad\n", ".SS tool list all\n",
                           "\n\\&.dots and \\eslashes\n", ".PP\nRun it as root.\n"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text << page;
  }
  EXPECT_EQ(page.find("secret"), std::string::npos);
  EXPECT_EQ(page.find(".SS tool list\n"), std::string::npos) << "what only holds others has no section";
}

}  // namespace
}  // namespace railhead::testing
