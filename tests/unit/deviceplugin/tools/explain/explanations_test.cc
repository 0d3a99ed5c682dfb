// Every name of the product can be explained, and an unknown one gets the nearest.
#include "deviceplugin/tools/explain/explanations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cni/protocol/cni_result.h"
#include "deviceplugin/services/health/rules.h"
#include "deviceplugin/services/node_status/health_events.h"
#include "deviceplugin/services/node_status/node_api.h"
#include "deviceplugin/services/node_status/rail_states.h"
#include "deviceplugin/services/node_status/rails_taint.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "netns/base/exit_status.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "tests/support/metrics/documented_metrics.h"

namespace railhead::testing {
namespace {

namespace fs = std::filesystem;
using explain::Explanation;
using explain::NameKind;

// The explanation of that kind. Without one the test fails.
Explanation Explained(NameKind kind, const std::string& name) {
  const auto found = explain::Explain(name);
  if (!found) {
    ADD_FAILURE() << name << ": " << Describe(found.error());
    return {};
  }
  const auto one = std::ranges::find(*found, kind, &Explanation::kind);
  if (one == found->end()) {
    ADD_FAILURE() << name << " is no " << WordOf(kind);
    return {};
  }
  EXPECT_EQ(one->name, name);
  EXPECT_NE(one->what, "") << name;
  return *one;
}

std::set<std::string> AlertsOfTheRules() {
  constexpr std::string_view kAlert = "- alert: ";
  std::set<std::string> alerts;
  for (const auto& file : fs::directory_iterator(SOURCE_DIR "/manifests/components/monitoring/rules")) {
    const std::string text = ReadFile(file.path().string()).value().value_or("");
    for (const std::string& line : Split(text, '\n')) {
      if (const auto at = line.find(kAlert); at != std::string::npos)
        alerts.insert(line.substr(at + kAlert.size()));
    }
  }
  return alerts;
}

TEST(ExplainTest, EachAlertWithChecksAndFix) {
  const auto alerts = AlertsOfTheRules();
  EXPECT_GT(alerts.size(), 50U);
  for (const std::string& name : alerts) {
    const Explanation alert = Explained(NameKind::kAlert, name);
    EXPECT_EQ(alert.details.size(), 3U) << name << ": severity, for, and when it fires";
    ASSERT_FALSE(alert.todo.empty()) << name;
    EXPECT_TRUE(alert.todo[0].starts_with("Check")) << name << ": " << alert.todo[0];
    EXPECT_EQ(alert.page, "docs/reference/runbooks.md#" + ToLower(name));
  }
}

TEST(ExplainTest, EachCniErrorCode) {
  std::set<int> codes = {kCniIncompatibleVersion, kCniUnsupportedField, kCniBadEnvironment};
  for (int code = 0; code <= static_cast<int>(ErrorCode::kLimited); ++code)
    codes.insert(CniCodeOf(static_cast<ErrorCode>(code)));
  for (const int code : codes) (void)Explained(NameKind::kCniError, std::to_string(code));
  const Explanation busy = Explained(NameKind::kCniError, std::to_string(kCniTryAgainLater));
  EXPECT_TRUE(std::ranges::any_of(busy.todo, [](const std::string& line) {
    return line.find("its DEL has not come yet") != std::string::npos;
  })) << Join(busy.todo, "\n");
}

TEST(ExplainTest, EachExitStatus) {
  for (const ExitMeaning& one : kExitMeanings)
    EXPECT_EQ(Explained(NameKind::kExitStatus, std::to_string(one.status)).what, one.meaning);
}

TEST(ExplainTest, EachConditionReasonTaintAndEvent) {
  (void)Explained(NameKind::kCondition, node_status::kRailsReady);
  (void)Explained(NameKind::kTaint, node_status::kRailsTaint);
  const auto drained = health::HealthReason{health::HealthRule::kDrained, "a", "", "drained", {}};
  const auto cut = health::HealthReason{health::HealthRule::kLink, "a", "", "no carrier", {}};
  std::set<std::string> reasons;
  for (const std::vector<health::HealthReason>& why : {std::vector<health::HealthReason>{}, {drained}, {cut}})
    reasons.insert(node_status::ConditionOf({{"rail0", "pf0", why.empty(), why, {}}}).reason);
  const node_status::RailState reached{"rail0", "pf0", true, {}, {}};
  const node_status::RailState silent{"rail0", "pf0", true, {}, "probes reach nothing"};
  reasons.insert(node_status::ConditionOf({silent}).reason);
  EXPECT_EQ(reasons.size(), 4U);
  for (const std::string& reason : reasons) (void)Explained(NameKind::kConditionReason, reason);
  const health::DeviceHealth healthy{"a", false, "a", "pf0", true, {}, {}};
  const health::DeviceHealth unhealthy{"a", false, "a", "pf0", false, {}, {cut}};
  std::set<std::string> events;
  for (const auto& [before, now] : {std::pair{healthy, unhealthy}, std::pair{unhealthy, healthy}}) {
    for (const auto& event : node_status::EventsBetween({before}, {{}, {now}, {}, {}}))
      events.insert(event.reason);
  }
  for (const auto& [before, now] : {std::pair{reached, silent}, std::pair{silent, reached}}) {
    for (const auto& event : node_status::EventsOfProbes({before}, {now})) events.insert(event.reason);
  }
  EXPECT_EQ(events.size(), 4U);
  for (const std::string& event : events) (void)Explained(NameKind::kEvent, event);
}

TEST(ExplainTest, EachDoctorCheckWithWhyFindingsAndFix) {
  for (const doctor::Check& check : doctor::AllChecks()) {
    const Explanation one = Explained(NameKind::kDoctorCheck, std::string(check.id));
    EXPECT_EQ(one.details.size(), 3U) << check.id;
    EXPECT_FALSE(one.todo.empty()) << check.id;
  }
}

TEST(ExplainTest, EachHealthRule) {
  for (const auto& [name, rule] : Names<health::HealthRule>::kAll) {
    const Explanation one = Explained(NameKind::kHealthRule, name);
    EXPECT_EQ(one.details.size(), 3U) << name;
  }
  EXPECT_EQ(Explained(NameKind::kHealthRule, "errorRate").todo.front(), "replace the cable");
}

TEST(ExplainTest, EachMetricWithItsHelp) {
  for (const auto page : {MetricsPageName::kDaemon, MetricsPageName::kNics}) {
    const auto metrics = DocumentedMetrics(page);
    EXPECT_GT(metrics.size(), 20U);
    for (const auto& [name, family] : metrics)
      EXPECT_EQ(Explained(NameKind::kMetric, name).what, family.help);
  }
}

TEST(ExplainTest, SeriesOfAMetric) {
  const auto bucket = explain::Explain("railhead_bind_duration_seconds_bucket");
  ASSERT_TRUE(bucket) << Describe(bucket.error());
  EXPECT_EQ(bucket->front().name, "railhead_bind_duration_seconds");
  const auto counter = explain::Explain("railhead_rdma_out_of_sequence_total");
  ASSERT_TRUE(counter) << Describe(counter.error());
  EXPECT_EQ(counter->front().name, "railhead_rdma_*");
}

TEST(ExplainTest, ANameInAnotherCase) {
  const auto found = explain::Explain("railheaddown");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->front().name, "RailheadDown");
}

TEST(ExplainTest, AnUnknownNameGetsTheNearest) {
  const auto close = explain::Explain("RailheadDwon");
  ASSERT_FALSE(close);
  EXPECT_EQ(close.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(close.error().hint, "did you mean RailheadDown?");
  const auto part = explain::Explain("example.com/rails-not-ready");
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().hint, std::string("these have it in their names: ") + node_status::kRailsTaint);
  const auto far = explain::Explain("nothing like that at all");
  ASSERT_FALSE(far);
  EXPECT_EQ(far.error().hint, "all names: railctl explain");
}

TEST(ExplainTest, PagesExistAndTextsHaveNoMarks) {
  const auto all = explain::AllExplanations();
  std::set<std::pair<NameKind, std::string>> names;
  for (const Explanation& one : all) {
    EXPECT_TRUE(names.emplace(one.kind, one.name).second) << one.name << " is there twice";
    EXPECT_NE(one.name, "");
    EXPECT_TRUE(fs::exists(std::string(SOURCE_DIR "/") + one.page.substr(0, one.page.find('#')))) << one.page;
    std::vector<std::string> texts = one.todo;
    texts.push_back(one.what);
    texts.insert(texts.end(), one.details.begin(), one.details.end());
    for (const std::string& text : texts) {
      EXPECT_EQ(text.find('`'), std::string::npos) << one.name << ": " << text;
      EXPECT_EQ(text.find("]("), std::string::npos) << one.name << ": " << text;
    }
  }
}

}  // namespace
}  // namespace railhead::testing
