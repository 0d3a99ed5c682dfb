#include "bench/node_report.h"

#include <array>
#include <cstdio>

#include "bench/node_series.h"
#include "bench/report.h"

namespace railhead::bench {
namespace {

template <typename... Values>
std::string Text(const char* format, Values... values) {
  std::array<char, 256> buffer{};
  (void)std::snprintf(buffer.data(), buffer.size(), format, values...);
  return buffer.data();
}

// "  railheadd: Allocate 1      us   p50  40.12   p99  61.00   max  80.00"
std::string Line(const Series& series) {
  return Text("  %-24s %-30s %9.2f %9.2f %9.2f %-3s (n = %zu)\n", series.who.c_str(), series.what.c_str(),
              series.Median(), series.Percentile(0.99), series.Max(), series.unit.c_str(),
              series.values.size());
}

}  // namespace

std::string NodeTable(const Record& record) {
  const Series* devices = record.Find(kNode, kDaemonName, kDevices);
  std::string lines;
  for (const Series& series : record.all()) {
    if (series.group == kNode && !series.values.empty() && &series != devices) lines += Line(series);
  }
  if (lines.empty()) return {};
  std::string title = "railheadd on a made-up node";
  if (devices != nullptr) title += Text(" with %.0f VFs", devices->Median());
  return title + "\n" + Text("  %-55s %9s %9s %9s\n", "", "p50", "p99", "max") + lines + "\n";
}

}  // namespace railhead::bench
