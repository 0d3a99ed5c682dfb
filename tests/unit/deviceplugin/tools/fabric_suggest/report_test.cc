// Reports of nodes, read again.
#include "deviceplugin/tools/fabric_suggest/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/unit/deviceplugin/tools/fabric_suggest/nodes.h"
#include "tests/unit/deviceplugin/tools/fabric_suggest/suggestions.h"

namespace railhead::testing {
namespace {

using fabric_suggest::Gathered;
using fabric_suggest::NodeObservation;
using fabric_suggest::Suggest;
using fabric_suggest::Suggestion;
using fabric_suggest::Unread;

Gathered Gather(const std::string& text) {
  std::istringstream in(text);
  Gathered all;
  fabric_suggest::GatherObservations(in, "text", &all);
  return all;
}

// As the command prints it.
std::string TextOf(const NodeObservation& node) {
  fabric_suggest::SuggestReport report;
  report.observations = {node};
  return record::Dump(ToJson(report), 2) + "\n";
}

TEST(SuggestReportTest, IsReadAgain) {
  fabric_suggest::SuggestReport report;
  report.observations = GpuNodes(2);
  Suggestion suggestion = Suggest(report.observations);
  report.fabric = suggestion.fabric;
  report.guesses = suggestion.guesses;
  const std::string text = record::Dump(ToJson(report), 2);
  EXPECT_EQ(nlohmann::json::parse(text)["fabric"], nlohmann::json::parse(suggestion.fabric));
  const Gathered read = Gather(text);
  EXPECT_EQ(read.observations, report.observations);
  EXPECT_EQ(read.unread, std::vector<Unread>{});
}

// A report with something wrong is named with its place, and those around it count.
TEST(SuggestReportTest, AWrongReportEndsNothing) {
  struct Case {
    std::string text;
    std::string error;
  };
  const std::string whole = TextOf(GpuNode(1));
  const std::vector<Case> cases = {
      {R"({"version": 1, "observations": [{"node": ""}]})", "/observations/0/node"},
      {R"({"version": 1, "observations": [{"node": "a", "pfs": [{"device": "0000:10:00.0", "mtu": "x"}]}]})",
       "/observations/0/pfs/0/mtu"},
      {R"({"version": 9, "observations": []})", "/version"},
      {R"({"version": 1})", "/observations"},
      {R"({"version": 1, "observations": []})", "it has no observation of a node"},
      {R"({"version": 1, "observations": [}]})", "no valid JSON at byte"},
      {whole.substr(0, whole.size() / 2), "no valid JSON at byte"},
      {whole.substr(0, whole.find("gpu-001") + 3), "no valid JSON at byte"},
      {"Error from server: the pod is gone\nwith a second line", "no valid JSON at byte"},
  };
  for (const Case& one : cases) {
    const Gathered read = Gather(TextOf(GpuNode(0)) + one.text + "\n" + TextOf(GpuNode(2)));
    ASSERT_EQ(read.observations.size(), 2U) << one.text;
    EXPECT_EQ(read.observations[1].node, "gpu-002");
    ASSERT_EQ(read.unread.size(), 1U) << one.text;
    EXPECT_EQ(read.unread[0].file, "text#2");
    EXPECT_NE(read.unread[0].error.find(one.error), std::string::npos) << read.unread[0].error;
  }
}

// A node that prints anything at all costs no more than its own report.
TEST(SuggestReportTest, AFloodOfIncompleteReportsEnds) {
  std::string flood;
  for (int i = 0; i < 100'000; ++i) flood += "{\n";
  const Gathered read = Gather(TextOf(GpuNode(0)) + flood);
  EXPECT_EQ(read.observations.size(), 1U);
  EXPECT_LE(read.unread.size(), 51U);
  EXPECT_EQ(Gather("{\n{\n" + TextOf(GpuNode(0))).observations.size(), 1U);
}

TEST(SuggestReportTest, NothingIsNamedToo) {
  for (const char* text : {"", "\n \n"})
    EXPECT_EQ(Gather(text).unread, (std::vector<Unread>{{"text", "it is empty"}}));
}

TEST(SuggestReportTest, OfOneNodeTheLaterObservation) {
  auto later = GpuNode(0);
  later.time += std::chrono::hours(1);
  later.pfs.resize(2);
  for (const std::string& text : {TextOf(GpuNode(0)) + TextOf(later), TextOf(later) + TextOf(GpuNode(0))}) {
    const Gathered read = Gather(text);
    EXPECT_EQ(read.observations, std::vector{later});
    EXPECT_EQ(read.unread,
              (std::vector<Unread>{
                  {"text#2", "it has a second observation of node gpu-000: the later one of both counts"}}));
  }
}

}  // namespace
}  // namespace railhead::testing
