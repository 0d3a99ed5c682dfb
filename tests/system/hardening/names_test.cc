// Names that would lead to another path, end early, or are not text. Every verb and railctl refuse them and
// make nothing. The error names the field, in text that is safe to print.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cni/fabric/fabric.h"
#include "tests/support/process.h"
#include "tests/support/temp_root.h"
#include "tests/system/hardening/outside.h"

namespace railhead::testing {
namespace {

using Environment = std::map<std::string, std::string>;

// Invalid names. (The kernel does not pass a variable of 128 KiB to a program.)
const std::vector<std::string> kBadNames = {"../x",
                                            "../../etc/passwd",
                                            "a/b",
                                            "/",
                                            "..",
                                            "a\nb",
                                            "\x1b[31m",
                                            "\xff\xfe",
                                            "a\tb",
                                            std::string(4096, 'a'),
                                            std::string(100'000, '/')};

// Fewer names for the other verbs, which share ADD's checks.
std::vector<std::string> BadNames(const std::string& command) {
  return command == "ADD" ? kBadNames : std::vector<std::string>{"../x", "a/b", "a\nb"};
}

// Whether the text has no control character. The JSON parser checks that it is UTF-8.
bool IsSafeToPrint(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c == '\n' || (c >= ' ' && c != 0x7f); });
}

class NamesTest : public ::testing::Test {
 protected:
  NamesTest() {
    temp_.Write("/etc/railhead/fabric.json",
                R"({"version":1,"rails":[{"name":"rail0","pf":"pf0","subnet":"10.1.0.0/24"}]})");
    before_ = ListingOf(temp_.directory());
  }

  ProcessOutput Run(const char* plugin, const std::string& command, const Environment& changes,
                    const std::string& config) {
    Environment environment{{"CNI_COMMAND", command},        {"CNI_CONTAINERID", "c1"},
                            {"CNI_NETNS", "/run/netns/x"},   {"CNI_IFNAME", "net1"},
                            {"CNI_PATH", temp_.directory()}, {"RAILHEAD_ROOT", temp_.directory()}};
    for (const auto& [name, value] : changes) environment[name] = value;
    return RunProcess({plugin}, environment, config);
  }
  // Expects an error of `command` that names `field`, and that nothing was made.
  void Refused(const char* plugin, const std::string& command, const Environment& changes,
               const std::string& config, const std::string& field) {
    const auto output = Run(plugin, command, changes, config);
    const auto json = nlohmann::json::parse(output.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << output.status << " " << output.out << output.err;
    EXPECT_EQ(output.status, 1);
    const std::string said = json.value("msg", "");
    EXPECT_NE(said.find(field), std::string::npos) << said.substr(0, 300);
    EXPECT_TRUE(IsSafeToPrint(output.out)) << output.out;
    // JSON escapes a control character, but kubelet prints the character itself.
    EXPECT_TRUE(IsSafeToPrint(said) && said.find('\n') == std::string::npos) << output.out;
    EXPECT_LT(output.out.size(), 2000U);
    EXPECT_EQ(ListingOf(temp_.directory()), before_) << field;
  }

  static std::string Config(const std::string& more = "", const std::string& name = "n") {
    nlohmann::json json{{"cniVersion", "1.1.0"}, {"name", name}, {"type", "railhead"}};
    json["ipam"] = {{"type", "railhead-ipam"}, {"subnet", "10.9.0.0/24"}};
    json["cni.dev/valid-attachments"] = nlohmann::json::array();
    // Keeps bytes that are not UTF-8 on purpose.
    std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore);
    return more.empty() ? text : text.insert(1, more + ",");
  }

  const TempRoot temp_;
  std::string before_;
};

TEST_F(NamesTest, OfTheEnvironment) {
  for (const char* plugin : {RAILHEAD, RAILHEAD_IPAM}) {
    for (const char* command : {"ADD", "DEL", "CHECK"}) {
      for (const std::string& bad : BadNames(command)) {
        Refused(plugin, command, {{"CNI_CONTAINERID", bad}}, Config(), "CNI_CONTAINERID");
        if (command != std::string("DEL"))
          Refused(plugin, command, {{"CNI_IFNAME", bad}}, Config(), "CNI_IFNAME");
      }
    }
    // The DEL after a refused ADD: an error would keep the sandbox for good.
    for (const std::string& bad : kBadNames) {
      const auto output = Run(plugin, "DEL", {{"CNI_IFNAME", bad}}, Config());
      EXPECT_EQ(output.status, 0) << output.out;
      EXPECT_EQ(output.out + output.err, "");
      EXPECT_EQ(ListingOf(temp_.directory()), before_);
    }
  }
}

TEST_F(NamesTest, OfThePodAndItsNamespace) {
  for (const char* name : {"K8S_POD_UID", "K8S_POD_NAME", "K8S_POD_NAMESPACE"}) {
    for (const std::string& bad : kBadNames)
      Refused(RAILHEAD, "ADD", {{"CNI_ARGS", std::string(name) + "=" + bad}}, Config(), name);
  }
  for (const char* command : {"ADD", "CHECK"}) {
    for (const char* bad : {"../x", "run/netns/x", "/run/netns/a\nb", "/run/netns/\x1b[31m"})
      Refused(RAILHEAD, command, {{"CNI_NETNS", bad}}, Config(), "CNI_NETNS");
    Refused(RAILHEAD, command, {{"CNI_NETNS", "/" + std::string(5000, 'a')}}, Config(), "CNI_NETNS");
  }
}

// Skips "\xff\xfe" as a name, since a text with "\xff" is not valid JSON.
TEST_F(NamesTest, OfTheNetwork) {
  for (const char* command : {"ADD", "DEL", "CHECK", "GC", "STATUS"}) {
    for (const std::string& bad : BadNames(command)) {
      if (bad == "\xff\xfe") continue;
      Refused(RAILHEAD, command, {}, Config("", bad), "/name");
      Refused(RAILHEAD_IPAM, command, {}, Config("", bad), "/name");
    }
    Refused(RAILHEAD, command, {},
            Config(R"("x":")"
                   "\xff"
                   R"(")"),
            "network configuration");
    Refused(RAILHEAD, command, {}, Config(R"("deviceID":"0000:43:00.1\u0000/x")"), "/deviceID: holds a NUL");
    Refused(RAILHEAD, command, {}, Config(R"("x\u0000":1)"), "holds a NUL");
    Refused(RAILHEAD, command, {}, Config(R"("x":")" + std::string(std::size_t{1} << 20, 'x') + "\""),
            "larger than 1048576 bytes");
  }
}

TEST_F(NamesTest, OfDevicesRailsAndPlugins) {
  const auto field = [&](const std::string& name, const std::string& bad) {
    const std::string text =
        nlohmann::json(bad).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    Refused(RAILHEAD, "ADD", {}, Config("\"" + name + "\":" + text), "/" + name);
  };
  for (const std::string& bad : kBadNames) {
    if (bad.size() > 5000) continue;  // repeated in the message
    field("deviceID", bad.substr(0, 100));
    field("fabric", bad == "/" ? "x" : bad[0] == '/' ? bad.substr(1) : bad.substr(0, 100));
  }
}

TEST_F(NamesTest, OfTheFabric) {
  const auto said = [](const std::string& rail, const std::string& resource) {
    nlohmann::json json{
        {"version", 1}, {"rails", {{{"name", rail}, {"pf", "pf0"}}}}, {"pools", {{{"resource", resource}}}}};
    const auto fabric =
        ParseFabric(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::ignore), "fabric.json");
    return fabric ? std::string("good") : fabric.error().message;
  };
  ASSERT_EQ(said("rail0", "a.io/roce"), "good");
  for (const char* bad : {"../x", "a//b", "/", "a\nb", "\x1b[31m", "a b", "\x7f", "x/.."}) {
    EXPECT_NE(said(bad, "a.io/roce").find("/rails/0/name"), std::string::npos) << said(bad, "a.io/roce");
    EXPECT_NE(said("rail0", bad).find("/pools/0/resource"), std::string::npos) << said("rail0", bad);
  }
  for (const std::string& bad : {std::string("../../x/y"), std::string("a.io/x\n"),
                                 "a.io/" + std::string(4096, 'x'), std::string("a.io/\xc3\xa9")})
    EXPECT_NE(said("rail0", bad).find("/pools/0/resource"), std::string::npos) << bad;
}

TEST_F(NamesTest, OfRailctl) {
  const Environment environment{{"RAILHEAD_ROOT", temp_.directory()}};
  for (const std::string& bad :
       {std::string("../../etc/passwd"), std::string("a\nb\xff"), std::string(100'000, '/')}) {
    for (const std::vector<std::string>& words : {std::vector<std::string>{"health", bad},
                                                  {"nccl", "show", bad},
                                                  {"nccl", "verify", bad},
                                                  {"ipam", "release", bad},
                                                  {"ipam", "show", bad},
                                                  {"ipam", "list", "--pool", bad},
                                                  {"vfs", "apply", "--rail", bad}}) {
      std::vector<std::string> arguments{RAILCTL};
      arguments.insert(arguments.end(), words.begin(), words.end());
      const auto output = RunProcess(arguments, environment, "");
      EXPECT_GE(output.status, 0) << words[0] << ": killed";
      EXPECT_EQ(ListingOf(temp_.directory()), before_) << words[0] << " " << bad.substr(0, 100);
    }
  }
}

TEST_F(NamesTest, OfAnotherPluginsConfiguration) {
  for (const char* bad : {"../x", "a/b", "a\nb", ".."}) {
    nlohmann::json json;
    json["resourceList"] = {{{"resourceName", bad}, {"selectors", {{{"vendors", {"15b3"}}}}}}};
    temp_.Write("/config.json", json.dump());
    const auto output =
        RunProcess({RAILCTL, "config", "check", "/config.json"}, {{"RAILHEAD_ROOT", temp_.directory()}}, "");
    EXPECT_GT(output.status, 0) << output.out;
    EXPECT_NE((output.out + output.err).find("resourceName"), std::string::npos) << output.out << output.err;
  }
}

}  // namespace
}  // namespace railhead::testing
