// Metrics as text: what Prometheus' own C++ library would write, and what a strict reader
// takes.
#include "deviceplugin/support/metrics/exposition.h"

#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "deviceplugin/support/metrics/counter.h"
#include "deviceplugin/support/metrics/process_metrics.h"
#include "tests/support/metrics/metrics_parser.h"

namespace railhead::testing {
namespace {

using std::chrono::microseconds;

const char* const kOdd = "a \"quoted\\path\"\nand \xC3\xA9 line";

std::string Page(ExpositionFormat format, const LatencyHistogram& histogram,
                 const std::string& help = "Calls") {
  Exposition page(format);
  page.Begin(MetricType::kCounter, "x_calls", help);
  page.Sample({{"who", kOdd}, {"outcome", "good"}}, std::uint64_t{18'000'000'000'000'000'000U});
  page.Begin(MetricType::kGauge, "x_level", "A level");
  page.Sample({}, 0.25);
  page.Begin(MetricType::kHistogram, "x_seconds", "A duration");
  page.Sample({{"who", "me"}}, histogram);
  return std::move(page).Finish();
}

prometheus::ClientMetric Metric(std::vector<prometheus::ClientMetric::Label> labels) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  return metric;
}

std::string PrometheusPage(const LatencyHistogram& histogram) {
  auto calls = Metric({{"who", kOdd}, {"outcome", "good"}});
  calls.counter.value = 18e18;
  auto level = Metric({});
  level.gauge.value = 0.25;
  auto seconds = Metric({{"who", "me"}});
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < LatencyHistogram::kBoundsUs.size(); ++i) {
    count += histogram.InBucket(i);
    seconds.histogram.bucket.push_back({count, static_cast<double>(LatencyHistogram::kBoundsUs[i]) / 1e6});
  }
  count += histogram.InBucket(LatencyHistogram::kBoundsUs.size());
  seconds.histogram.bucket.push_back({count, std::numeric_limits<double>::infinity()});
  seconds.histogram.sample_count = count;
  seconds.histogram.sample_sum = static_cast<double>(histogram.sum_ns()) / 1e9;
  return prometheus::TextSerializer().Serialize(
      {{"x_calls_total", "Calls", prometheus::MetricType::Counter, {calls}},
       {"x_level", "A level", prometheus::MetricType::Gauge, {level}},
       {"x_seconds", "A duration", prometheus::MetricType::Histogram, {seconds}}});
}

// Both as numbers: how a number is written is each writer's own.
void ExpectSame(const MetricsText& ours, const MetricsText& theirs) {
  ASSERT_EQ(ours.errors, std::vector<std::string>());
  ASSERT_EQ(ours.families.size(), theirs.families.size());
  for (const auto& [name, family] : theirs.families) {
    const auto found = ours.families.find(name);
    ASSERT_NE(found, ours.families.end()) << name;
    EXPECT_EQ(found->second.type, family.type) << name;
    EXPECT_EQ(found->second.samples.size(), family.samples.size()) << name;
    for (const MetricSample& sample : family.samples) {
      auto labels = sample.labels;
      // One of 0.0001 and 1e-04 is each one's bound.
      const MetricSample* same = nullptr;
      for (const MetricSample& candidate : found->second.samples) {
        auto other = candidate.labels;
        const bool bound = labels.contains("le") && other.contains("le");
        if (bound && std::stod(labels["le"]) == std::stod(other["le"])) other["le"] = labels["le"];
        if (candidate.name == sample.name && other == labels) same = &candidate;
      }
      ASSERT_NE(same, nullptr) << sample.name;
      EXPECT_DOUBLE_EQ(same->value, sample.value) << sample.name;
    }
  }
}

TEST(ExpositionTest, SaysWhatPrometheusOwnLibrarySays) {
  LatencyHistogram histogram;
  for (const int us : {1, 10, 11, 99, 5'000, 20'000'000}) histogram.Observe(microseconds(us));
  MetricsText theirs = ParseMetrics(PrometheusPage(histogram), false);
  theirs.errors.clear();  // it may leave things out that we ask of ourselves
  ExpectSame(ParseMetrics(Page(ExpositionFormat::kText, histogram), false), theirs);
  // Which it does not escape.
  const std::string ours = Page(ExpositionFormat::kText, histogram, "Calls\\that\nwere made");
  EXPECT_EQ(ParseMetrics(ours, false).errors, std::vector<std::string>());
  EXPECT_NE(ours.find("# HELP x_calls_total Calls\\\\that\\nwere made\n"), std::string::npos) << ours;
}

TEST(ExpositionTest, OpenMetricsNamesFamiliesWithoutTotalAndEnds) {
  LatencyHistogram histogram;
  histogram.Observe(microseconds(30));
  MetricsText page = ParseMetrics(Page(ExpositionFormat::kOpenMetrics, histogram), true);
  EXPECT_EQ(page.errors, std::vector<std::string>());
  EXPECT_TRUE(page.families.contains("x_calls"));
  EXPECT_EQ(page.Value("x_calls_total", {{"who", kOdd}, {"outcome", "good"}}), 18e18);
  EXPECT_NE(page.Find("x_seconds_bucket", {{"who", "me"}, {"le", "1.0"}}), nullptr)
      << "a bound looks like a float";
}

TEST(ExpositionTest, LabelsThatAreSharedSayTheSame) {
  Exposition page(ExpositionFormat::kText);
  page.Begin(MetricType::kCounter, "x_calls", "Calls");
  page.Sample({{"who", kOdd}, {"outcome", "good"}}, std::uint64_t{7});
  Exposition shared(ExpositionFormat::kText);
  shared.Begin(MetricType::kCounter, "x_calls", "Calls");
  shared.Sample(LabelText().With({{"who", kOdd}, {"none", ""}}).With({{"outcome", "good"}, {"pod", ""}}),
                std::uint64_t{7});
  EXPECT_EQ(std::move(page).Finish(), std::move(shared).Finish());

  Exposition bare(ExpositionFormat::kText);
  bare.Begin(MetricType::kGauge, "x_level", "A level");
  bare.Sample(LabelText().With({{"none", ""}}), 0.25);
  EXPECT_NE(std::move(bare).Finish().find("\nx_level 0.25\n"), std::string::npos);
}

TEST(ExpositionTest, WhatIsNotUtf8IsReplaced) {
  for (const std::string bad :
       {"\xFF", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x28\xA1"}) {
    Exposition page(ExpositionFormat::kText);
    page.Begin(MetricType::kGauge, "x", "y");
    page.Sample({{"a", "<" + bad + ">"}}, std::uint64_t{1});
    const std::string text = std::move(page).Finish();
    EXPECT_NE(text.find("<\xEF\xBF\xBD"), std::string::npos);
    EXPECT_EQ(text.find(bad + ">"), std::string::npos);
  }
}

TEST(ExpositionTest, TheFormatIsWhatTheScraperTakes) {
  EXPECT_EQ(FormatAccepted(""), ExpositionFormat::kText);
  EXPECT_EQ(FormatAccepted("*/*"), ExpositionFormat::kText);
  EXPECT_EQ(
      FormatAccepted("application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5"),
      ExpositionFormat::kOpenMetrics);
}

TEST(LatencyHistogramTest, EachDurationIsInTheFirstBucketThatHoldsIt) {
  LatencyHistogram histogram;
  histogram.Observe(std::chrono::nanoseconds(-5));
  histogram.Observe(microseconds(10));
  histogram.Observe(std::chrono::nanoseconds(10'001));
  histogram.Observe(std::chrono::hours(1));
  EXPECT_EQ(histogram.InBucket(0), 2U);
  EXPECT_EQ(histogram.InBucket(1), 1U);
  EXPECT_EQ(histogram.InBucket(LatencyHistogram::kBoundsUs.size()), 1U);
  EXPECT_EQ(histogram.sum_ns(), 3'600'000'020'001U);
}

TEST(LatencyHistogramTest, NothingIsLostBetweenThreads) {
  constexpr int kEach = 20'000;
  LatencyHistogram histogram;
  Counter counter;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) {
        histogram.Observe(microseconds(n % 200));
        counter.Add();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= LatencyHistogram::kBoundsUs.size(); ++i) count += histogram.InBucket(i);
  EXPECT_EQ(count, 4U * kEach);
  EXPECT_EQ(counter.value(), 4U * kEach);
}

TEST(ProcessFactsTest, AreThoseOfThisProcess) {
  Exposition writer(ExpositionFormat::kText);
  AppendProcessMetrics(&writer);
  MetricsText page = ParseMetrics(std::move(writer).Finish(), false);
  const double start = page.Value("process_start_time_seconds");
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_GT(start, now - 3600.0 * 24);
  EXPECT_LE(start, now + 2) << "the kernel's boot time is in whole seconds";
  EXPECT_GE(page.Value("process_cpu_seconds_total"), 0);
  EXPECT_GT(page.Value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(page.Value("process_virtual_memory_bytes"), page.Value("process_resident_memory_bytes"));
  EXPECT_GE(page.Value("process_open_fds"), 3);
  EXPECT_GE(page.Value("process_max_fds"), page.Value("process_open_fds"));
  EXPECT_EQ(page.errors, std::vector<std::string>());
}

// The reader of these tests notices what it should.
TEST(MetricsParserTest, Refuses) {
  const std::string head = "# HELP a b\n# TYPE a gauge\n";
  EXPECT_TRUE(ParseMetrics(head + "a 1\n", false).errors.empty());
  for (const std::string& bad :
       {head + "a 1", head + "a 1\na 2\n", head + "b 1\n", head + "a{c=d} 1\n", head + "a{c=\"d} 1\n",
        head + "a x\n", head + "a\n", head + head, std::string("a 1\n"),
        std::string("# HELP a\n# TYPE a gauge\n"), std::string("# HELP a b\n# TYPE a counter\n"),
        head + "a 1\n# EOF\n",
        std::string(
            "# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_count 1\n"),
        std::string("# HELP a b\n# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_count 2\n")}) {
    EXPECT_FALSE(ParseMetrics(bad, false).errors.empty()) << bad;
  }
  EXPECT_FALSE(ParseMetrics(head + "a 1\n", true).errors.empty()) << "no # EOF";
}

}  // namespace
}  // namespace railhead::testing
