// Control characters that a pod, a switch or another node chose do not reach the operator's terminal.
#include "deviceplugin/tools/railctl/print.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "netns/base/node.h"
#include "tests/support/process.h"
#include "tests/support/rapidcheck.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using railctl::OneLine;
using railctl::PrintableText;

std::string Shown(const std::string& text, bool colours = false) {
  railctl::PrintableText printable(colours);
  return printable.Next(text) + printable.Rest();
}

// The function checks bytes, as a terminal sees them. It does not use the product's decoder.
bool HasControls(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if (byte < 0x20 && byte != '\n' && byte != '\t') return true;
    if (byte == 0x7f) return true;
    const auto next = i + 1 < text.size() ? static_cast<std::uint8_t>(text[i + 1]) : 0;
    if (byte == 0xc2 && next >= 0x80 && next < 0xa0) return true;
  }
  // A byte that is not UTF-8 could be a C1 control.
  return nlohmann::json(text)
                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                 .find("\xef\xbf\xbd") != std::string::npos &&
         text.find("\xef\xbf\xbd") == std::string::npos;
}

RC_GTEST_PROP(PrintableProperty, AnyBytesInAnyPiecesBecomeHarmless, ()) {
  // Bytes that matter are more frequent than by chance.
  const auto byte = rc::gen::oneOf(rc::gen::arbitrary<char>(),
                                   rc::gen::element('\x1b', '[', '3', 'm', '\x9b', '\xc2', '\x85', '\xe2',
                                                    '\x80', '\xae', '\r', '\n', '\a', 'x'));
  const auto text = *rc::gen::container<std::string>(byte);
  const std::string whole = Shown(text);
  RC_ASSERT(!HasControls(whole));
  railctl::PrintableText printable(false);
  std::string pieces;
  for (std::size_t at = 0; at < text.size();) {
    const auto size = static_cast<std::size_t>(*rc::gen::inRange(1, 5));
    pieces += printable.Next(text.substr(at, size));
    at += size;
  }
  RC_ASSERT(pieces + printable.Rest() == whole);
  RC_ASSERT(OneLine(text).find('\n') == std::string::npos);
}

TEST(PrintableTest, WhatPeopleReadStaysAsItIs) {
  const std::string text = "rail0\tgpu-001: Gerät \xe2\x82\xac \xf0\x9f\x9a\x82 \xef\xbf\xbd\n";
  EXPECT_EQ(Shown(text), text);
  EXPECT_EQ(Shown("\x1b]0;title\x07"), "\\u001b]0;title\\u0007");
  const std::string reversing = std::string("\xe2\x80") + '\xae';
  EXPECT_EQ(Shown("a\xc2\x9b" + std::string("b") + reversing + "c\x9b"), "a\\u009bb\\u202ec\\x9b");
  EXPECT_EQ(OneLine("a\nb"), "a\\u000ab");
}

TEST(PrintableTest, OnTerminalsColoursPassAndNothingElse) {
  EXPECT_EQ(Shown("\x1b[31mred\x1b[0m", true), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(Shown("\x1b[31mred\x1b[0m"), "\\u001b[31mred\\u001b[0m");
  for (const char* harmful : {"\x1b[2J", "\x1b]0;x\x07", "\x1b[31;1H", "\x1b[", "\x1b"}) {
    const std::string shown = Shown(harmful, true);
    EXPECT_EQ(shown.find('\x1b'), std::string::npos) << shown;
  }
}

// The same foreign text in every place that commands show, as text and as JSON.
class CommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    temp_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    reachability::ReachabilityReport report;
    report.node = "gpu-001";
    report.time = std::chrono::system_clock::now();
    reachability::RailReachability& rail = report.rails.emplace_back();
    rail.rail = "rail0";
    rail.state = reachability::ReachabilityState::kDegraded;
    rail.because = kEvil;
    reachability::PodReachability& pod = report.pods.emplace_back();
    pod.pod_namespace = "ml";
    pod.pod = kEvil;
    pod.interface = "net1";
    pod.rail = "rail0";
    pod.state = reachability::ReachabilityState::kDead;
    pod.because = kEvil;
    std::filesystem::create_directories(temp_.directory() + "/run/railhead");
    ASSERT_TRUE(WriteReachabilityReport(temp_.root(), report));
    temp_.Write("/run/railhead/attachments/c1/rails@net1.json", "{" + kEvil);
  }
  ProcessOutput Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), RAILCTL);
    return RunProcess(arguments, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
  }

  TempRoot temp_;
  const std::string kEvil =
      "x\x1b]0;owned\x07\x1b[2J\x9b"
      "A\xe2\x80\xae"
      "\ny";
};

TEST_F(CommandsTest, ShowNoControlCharacters) {
  int shown = 0;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"reachability"},
        {"reachability", "--all"},
        {"journal", "list"},
        {"journal", "show", "/run/railhead/attachments/c1/rails@net1.json"},
        {"describe", kEvil},
        {"doctor"},
        {"drain", kEvil},
        {"status", "--http-address", ""},
        {"ipam", "show", kEvil}}) {
    const auto output = Run(command);
    EXPECT_FALSE(HasControls(output.out)) << command[0] << ": " << output.out;
    EXPECT_FALSE(HasControls(output.err)) << command[0] << ": " << output.err;
    shown += (output.out + output.err).find("owned") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(shown, 3) << "the text is in what is shown";
}

TEST_F(CommandsTest, JsonIsWhatItWas) {
  const auto output = Run({"reachability", "-o", "json"});
  EXPECT_FALSE(HasControls(output.out)) << output.out;
  const auto json = nlohmann::json::parse(output.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << output.out;
  const std::string because = json["rails"][0]["because"];
  EXPECT_EQ(because.substr(0, 15), kEvil.substr(0, 15));
}

// The filter covers stdio: no command writes past it.
TEST(SourcesTest, WriteByStdioOnly) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(SOURCE_DIR) + "/deviceplugin/tools/railctl")) {
    std::ifstream stream(entry.path());
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    ++files;
    if (entry.path().filename() == "print.cc") continue;
    for (const char* other : {"std::cout", "std::cerr", "STDERR_FILENO", "write(STDOUT", "write(1"})
      EXPECT_EQ(text.find(other), std::string::npos) << entry.path() << ": " << other;
  }
  EXPECT_GT(files, 20);
}

}  // namespace
}  // namespace railhead::testing
