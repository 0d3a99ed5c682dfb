// Every report of railctl's as JSON, YAML and a table; and that each command has all of them.
#include "deviceplugin/tools/railctl/output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/services/health/state_file.h"
#include "deviceplugin/services/lldp/lldp_report.h"
#include "deviceplugin/services/provision/report.h"
#include "deviceplugin/services/reachability/reachability_report.h"
#include "deviceplugin/services/reconcile/attach_timings_report.h"
#include "deviceplugin/services/reconcile/reconcile_report.h"
#include "deviceplugin/support/kubernetes/yaml.h"
#include "deviceplugin/tools/doctor/report.h"
#include "deviceplugin/tools/explain/explanations.h"
#include "deviceplugin/tools/install/install.h"
#include "deviceplugin/tools/install/removal.h"
#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "deviceplugin/tools/migrate/migration_report.h"
#include "deviceplugin/tools/pod_start/start_report.h"
#include "deviceplugin/tools/preflight/report.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/config_diff.h"
#include "deviceplugin/tools/railctl/description.h"
#include "deviceplugin/tools/railctl/device_list.h"
#include "deviceplugin/tools/railctl/node_summary.h"
#include "deviceplugin/tools/rdma_test/report.h"
#include "deviceplugin/tools/reachability_view/reachability_faults.h"
#include "deviceplugin/tools/topology_view/node_report.h"
#include "netns/json/record_schema.h"
#include "tests/support/daemon/two_rails.h"
#include "tests/support/process.h"
#include "tests/support/record_test.h"
#include "tests/support/seed.h"

namespace railhead::testing {

// Reports are not read again.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RecordTest);

namespace {

using Json = nlohmann::json;

// As YamlToJson() has it: numbers are text.
Json WithNumbersAsText(Json json) {
  if (json.is_number()) return json.dump();
  if (json.is_structured()) {
    for (Json& one : json) one = WithNumbersAsText(std::move(one));
  }
  return json;
}

Json ParsedYaml(const std::string& yaml) {
  const auto json = YamlToJson(yaml, "yaml");
  EXPECT_TRUE(json) << Describe(json.error()) << "\n" << yaml;
  return json ? Json::parse(*json) : Json();
}

template <typename T>
class ReportFormTest : public ::testing::Test {
 protected:
  AnyRecord any_{testing::Seed()};
};

using Reports = ::testing::Types<
    Error, doctor::Report, explain::Explanation, health::DeviceHealth, health::Drain, health::HealthRecord,
    install::InstalledFile, install::InstalledProgram, install::PodWithNics, install::RemovalReport,
    lldp::LldpReport, lldp::RailNeighbor, migrate::MigrationReport, pod_start::DeviceStep,
    pod_start::ResourceUse, pod_start::StartReport, preflight::Report, provision::VfsOutcome,
    provision::VfsPlan, railctl::AddressList, railctl::AddressReport, railctl::ConfigChange,
    railctl::ConfigDiff, railctl::DescribedAddress, railctl::DescribedDevice, railctl::DescribedPod,
    railctl::Description, railctl::DeviceList, railctl::KnownAddress, railctl::NodeSummary,
    railctl::OfferedDevice, railctl::RailAddresses, railctl::SummaryFinding, rdma_test::Report,
    rdma_test::ReportedTest, reachability_view::RailMatrix, reachability_view::ReachabilityFault,
    reachability::PeerReachability, reachability::PodReachability, reachability::RailReachability,
    reachability::ReachabilityReport, reconcile::ReconcileReport, reconcile::TimingsReport,
    topology_view::AcceleratorView, topology_view::NicView, topology_view::NodeView>;
TYPED_TEST_SUITE(ReportFormTest, Reports);

TYPED_TEST(ReportFormTest, YamlAndTextSayWhatJsonSays) {
  for (int tries = 0; tries < 100; ++tries) {
    const auto value = this->any_.template Of<TypeParam>();
    const auto written = ToJson(value);
    const Json json = Json::parse(record::Dump(written));
    ASSERT_EQ(json, Json::parse(record::Dump(written, 2)));
    ASSERT_EQ(json.size(), written.size()) << "each key once";
    const std::string yaml = JsonToYaml(written);
    ASSERT_EQ(ParsedYaml(yaml), WithNumbersAsText(json)) << yaml;
  }
}

TYPED_TEST(ReportFormTest, EachRowHasACellForEachColumn) {
  std::vector<TypeParam> list;
  for (int i = 0; i < 50; ++i) list.push_back(this->any_.template Of<TypeParam>());
  for (const bool wide : {false, true}) {
    const auto rows = TableOf(list, wide);
    ASSERT_EQ(rows.size(), list.size() + 1);
    const std::set<std::string> headings(rows[0].begin(), rows[0].end());
    EXPECT_EQ(headings.size(), rows[0].size()) << "no column is there twice";
    for (const Row& row : rows) {
      ASSERT_EQ(row.size(), rows[0].size());
      for (const std::string& cell : row) EXPECT_NE(cell, "");
    }
  }
  EXPECT_GE(TableOf(list, true)[0].size(), TableOf(list, false)[0].size());
}

// What readers of YAML 1.1 and 1.2 take for numbers, dates, bools and nulls is in quotes.
TEST(YamlTest, StringsStayStrings) {
  for (const char* text : {"",           "true", "No",  "null", "~",    "1",  "1e3", "0x1f", "0:43:00",
                           "2027-01-15", ".inf", "- a", "a: b", "a #b", "'",  "\"",  "{",    "&a",
                           "*a",         "!a",   "%",   "@",    "`",    " a", "a ",  "\n",   "\x1b"}) {
    const std::string yaml = JsonToYaml({{"key", text}, {text, "value"}});
    EXPECT_EQ(ParsedYaml(yaml), Json({{"key", text}, {text, "value"}})) << yaml;
    EXPECT_NE(yaml.find("key: \""), std::string::npos) << yaml;
  }
  EXPECT_EQ(JsonToYaml({{"rail", "rail0"},
                        {"path", "/run/x.json"},
                        {"list", {1, true, nullptr}},
                        {"none", Json::object()}}),
            "rail: rail0\npath: /run/x.json\nlist:\n  - 1\n  - true\n  - null\nnone: {}\n");
  EXPECT_EQ(ParsedYaml(JsonToYaml("a\xff")), Json("a\xef\xbf\xbd"));
}

// The schema of a value below `key`; `true`: none is known.
Json Below(const Json& schema, const char* key, const std::string& name = {}) {
  if (!schema.is_object() || !schema.contains(key)) return true;
  return name.empty() ? schema[key] : schema[key].value(name, Json(true));
}

// Every key but those that are names of things, whose object the schema gives any keys.
void VisitKeys(const Json& json, const Json& schema, const std::function<void(const std::string&)>& visit) {
  if (schema.is_object() && schema.contains("anyOf")) return VisitKeys(json, schema["anyOf"].back(), visit);
  if (json.is_array()) {
    for (const Json& one : json) VisitKeys(one, Below(schema, "items"), visit);
  }
  if (!json.is_object()) return;
  const bool of_names = schema.is_object() && !schema.contains("properties");
  for (const auto& [key, value] : json.items()) {
    if (!of_names) visit(key);
    VisitKeys(value, of_names ? Below(schema, "additionalProperties") : Below(schema, "properties", key),
              visit);
  }
}

bool IsCamelCase(const std::string& key) {
  static const std::regex form("^[a-z][a-zA-Z0-9]*$");
  return std::regex_match(key, form);
}

template <typename T>
class ReportKeysTest : public ReportFormTest<T> {};
TYPED_TEST_SUITE(ReportKeysTest, Reports);

// A report has no key that its list of fields, and so its schema, does not name.
TYPED_TEST(ReportKeysTest, AreThoseOfTheSchemaInCamelCase) {
  const Json schema = Json::parse(record::Dump(SchemaOf<TypeParam>("report")));
  ASSERT_TRUE(schema["properties"].is_object()) << schema;
  for (int tries = 0; tries < 20; ++tries) {
    const Json json = Json::parse(record::Dump(ToJson(this->any_.template Of<TypeParam>())));
    for (const auto& [key, value] : json.items()) EXPECT_TRUE(schema["properties"].contains(key)) << key;
    VisitKeys(json, schema, [](const std::string& key) { EXPECT_TRUE(IsCamelCase(key)) << key; });
  }
}

// "railctl ipam list" and so on.
void VisitCommands(CLI::App& app, const std::string& path,
                   const std::function<void(const std::string&, CLI::App&)>& visit) {
  const auto commands = app.get_subcommands([](CLI::App*) { return true; });
  if (commands.empty()) visit(path, app);
  for (CLI::App* command : commands) VisitCommands(*command, path + " " + command->get_name(), visit);
}

TEST(CommandLineTest, EachCommandThatReportsHasAllForms) {
  int status = 0;
  const Root root;
  CLI::App app;
  railctl::AddCommands(&app, root, &status);
  const std::set<std::string> without = {" completion",
                                         " config schema",
                                         " ipam export",
                                         " ipam import host-local",
                                         " ipam import whereabouts",
                                         " ipam release",
                                         " journal show",
                                         " man-page"};
  std::set<std::string> found;
  VisitCommands(app, "", [&](const std::string& path, CLI::App& command) {
    CLI::Option* output = command.get_option_no_throw("--output");
    if (output == nullptr) {
      found.insert(path);
      return;
    }
    EXPECT_TRUE(output->check_sname("o")) << path;
    EXPECT_NE(command.get_option_no_throw("--no-headers"), nullptr) << path;
    EXPECT_EQ(command.get_option_no_throw("--json"), nullptr) << path;
    const auto take = [&](const char* value) {
      output->clear();
      output->add_result(value);
      output->run_callback();
    };
    for (const char* value : {"table", "wide", "json", "yaml"})
      EXPECT_NO_THROW(take(value)) << path << " " << value;
    EXPECT_THROW(take("tree"), CLI::ValidationError) << path;
  });
  EXPECT_EQ(found, without);
}

class FormsTest : public TwoRails {
 protected:
  void SetUp() override {
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "1111-2222\n");
    sysfs_.Write("/etc/railhead/node-name", "gpu-001\n");
    sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric(R"(, "provision": {"vfs": 2})"));
    sysfs_.Write("/new/fabric.json", TwoRailFabric());
    sysfs_.Write("/wrong.json", R"({"version": 1, "rails": [{"name": "r", "pf": "no", "vlan": 9999}]})");
    sysfs_.Write(
        "/suite/config.json",
        R"({"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["pf0"], "isRdma": true}}]})");
    sysfs_.Write("/to/.keep", "");
    sysfs_.Write("/run/railhead/attachments/c1/rails@net1.json", "{");
    ASSERT_TRUE(health::AddDrain(root_, {kPf1, "rail1", "1e3", std::chrono::system_clock::now()}));
    AnyRecord any(1);
    reachability::ReachabilityReport reach;
    reach.node = "gpu-001";
    reach.time = std::chrono::system_clock::now();
    reach.rails.push_back(any.Of<reachability::RailReachability>());
    reach.rails[0].rail = "rail0";
    reach.rails[0].peers.clear();
    ASSERT_TRUE(WriteReachabilityReport(root_, reach));
    const lldp::RailNeighbor neighbor{
        "rail0", kPf0, "pf0", true, {}, std::nullopt, {}, lldp::Cabling::kUnknown, "no frame"};
    ASSERT_TRUE(lldp::kLldpFile.Write(root_, {"gpu-001", reach.time, {neighbor}}));
    ASSERT_TRUE(health::kHealthFile.Write(root_, {{{kPf0, false, kPf0, "pf0", true, reach.time, {}}},
                                                  {{reach.time, kPf0, true, 0, true, {}, {}}}}));
  }
  ProcessOutput Run(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) {
    arguments.insert(arguments.begin(), RAILCTL);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProcess(arguments, {{"RAILHEAD_ROOT", sysfs_.directory()}, {"PATH", "/usr/bin:/bin"}}, "");
  }

  const std::vector<std::vector<std::string>> commands_ = {
      {"config", "check", "/new/fabric.json"},
      {"config", "check", "/wrong.json"},
      {"config", "diff", "/new/fabric.json"},
      {"describe", "rail1"},
      {"describe", kPf0},
      {"devices"},
      {"doctor"},
      {"doctor", "--list"},
      {"drain"},
      {"drain", "rail1"},
      {"explain"},
      {"explain", "link"},
      {"nccl", "show"},
      {"nccl", "verify"},
      {"health"},
      {"health", "--history"},
      {"install", "check-removal"},
      {"install", "config", "--from", "/new", "--to", "/to"},
      {"install", "cli", "--from", "/new", "--to", "/nowhere"},
      {"install", "cni", "--from", "/new", "--to", "/nowhere"},
      {"install", "seccomp", "--to", "/to"},
      {"ipam", "list"},
      {"ipam", "check"},
      {"ipam", "events"},
      {"journal", "list"},
      {"labels"},
      {"lldp"},
      {"migrate", "--from", "/suite"},
      {"reachability"},
      {"preflight", "--skip", "doctor"},
      {"fabric", "suggest", "--listen", "0"},
      {"health", "replay", std::string(INCIDENTS) + "/cable-cut.jsonl"},
      {"status", "--http-address", ""},
      {"topology"},
      {"vfs", "plan"},
      {"why", "train/worker-0"},
  };
};

// Two runs are at two times: without times of day, ages and how long it took.
std::string Timeless(const std::string& text) {
  const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z)");
  const std::regex age(R"(\b\d+[smhd]\b)");
  return std::regex_replace(std::regex_replace(text, time, "TIME"), age, "AGE");
}

TEST_F(FormsTest, YamlOfACommandSaysWhatItsJsonSays) {
  for (const auto& command : commands_) {
    const std::string name = command[0] + " " + (command.size() > 1 ? command[1] : "");
    // The first of two may change something.
    (void)Run(command);
    const auto json = Run(command, {"-o", "json"});
    const auto yaml = Run(command, {"--output", "yaml"});
    EXPECT_EQ(json.status, yaml.status) << name;
    const Json said = Json::parse(Timeless(json.out), nullptr, false);
    ASSERT_TRUE(said.is_object()) << name << ": " << json.out << json.err;
    Json wanted = WithNumbersAsText(said);
    Json read = ParsedYaml(Timeless(yaml.out));
    for (Json* one : {&wanted, &read}) one->erase("elapsedMs");
    EXPECT_EQ(read, wanted) << name;
  }
}

// The labels' names are Kubernetes'. A suggested fabric has names of nodes; its schema holds its keys.
TEST_F(FormsTest, KeysAreInCamelCase) {
  for (const auto& command : commands_) {
    if (command[0] == "labels") continue;
    Json json = Json::parse(Run(command, {"-o", "json"}).out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << command[0];
    json.erase("fabric");
    VisitKeys(json, true,
              [&](const std::string& key) { EXPECT_TRUE(IsCamelCase(key)) << command[0] << ": " << key; });
  }
}

TEST_F(FormsTest, WithoutHeadersOnlyTheHeadingsAreLeftOut) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"doctor", "--list"},
                                                  {"devices"},
                                                  {"drain"},
                                                  {"explain"},
                                                  {"health"},
                                                  {"journal", "list"},
                                                  {"lldp"},
                                                  {"reachability"}}) {
    for (const char* form : {"table", "wide"}) {
      const auto whole = Timeless(Run(command, {"-o", form}).out);
      const auto bare = Timeless(Run(command, {"-o", form, "--no-headers"}).out);
      const auto words = [](const std::string& text) {
        std::istringstream in(text);
        return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
      };
      const std::string heading = whole.substr(0, whole.find('\n') + 1);
      EXPECT_EQ(words(bare), words(whole.substr(heading.size()))) << command[0];
      EXPECT_TRUE(std::ranges::none_of(heading, [](char c) { return c >= 'a' && c <= 'z'; })) << heading;
    }
  }
  EXPECT_GT(Run({"doctor", "--list", "-o", "wide"}).out.size(), Run({"doctor", "--list"}).out.size());
}

TEST_F(FormsTest, OfAllForms) {
  const auto wrong = Run({"drain", "-o", "xml"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE(wrong.err.find("yaml"), std::string::npos) << wrong.err;
  EXPECT_EQ(Run({"drain", "--json"}).status, 2);
  const auto list = Run({"drain", "-o", "yaml"}).out;
  EXPECT_NE(list.find("  - device: \"0000:83:00.0\"\n    name: rail1\n"), std::string::npos) << list;
  EXPECT_NE(list.find("reason: \"1e3\""), std::string::npos) << list;
}

}  // namespace
}  // namespace railhead::testing
