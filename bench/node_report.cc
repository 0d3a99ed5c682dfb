#include "bench/node_report.h"

#include "bench/node_series.h"
#include "bench/report.h"
#include "bench/text.h"

namespace railhead::bench {

std::string NodeTable(const Record& record) {
  const Series* devices = record.Find(kNode, kDaemonName, kDevices);
  std::string lines;
  for (const Series& series : record.all()) {
    if (series.group == kNode && !series.values.empty() && &series != devices)
      lines += PercentileLine(series);
  }
  if (lines.empty()) return {};
  std::string title = "railheadd on a made-up node";
  if (devices != nullptr) title += Text(" with %.0f VFs", devices->Median());
  return title + "\n" + PercentileHead() + lines + "\n";
}

}  // namespace railhead::bench
