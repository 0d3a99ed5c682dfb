#include "tests/support/metrics/documented_metrics.h"

#include <gtest/gtest.h>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::testing {

std::map<std::string, MetricFamily> DocumentedMetrics(MetricsPageName page) {
  std::map<std::string, MetricFamily> families;
  const std::string text = ReadFile(SOURCE_DIR "/docs/reference/metrics.md").value().value_or("");
  auto section = MetricsPageName::kDaemon;
  for (const std::string& line : Split(text, '\n')) {
    if (line.rfind("## NICs", 0) == 0) section = MetricsPageName::kNics;
    const auto cells = Split(line, '|');
    if (section != page || cells.size() != 6 || cells[1].rfind(" `", 0) != 0) continue;
    const auto trimmed = [&](std::size_t i) { return cells[i].substr(1, cells[i].size() - 2); };
    const std::string name = trimmed(1).substr(1, trimmed(1).size() - 2);
    families[name] = {trimmed(2), trimmed(4), {}};
  }
  return families;
}

void ExpectDocumented(const MetricsText& page, MetricsPageName name, const std::string& but) {
  const auto documented = DocumentedMetrics(name);
  for (const auto& [family_name, family] : page.families) {
    const auto found = documented.find(family_name);
    if (found == documented.end()) {
      if (!but.empty() && family_name.rfind(but, 0) == 0) continue;
      ADD_FAILURE() << "docs/reference/metrics.md lacks: | `" << family_name << "` | " << family.type
                    << " | | " << family.help << " |";
      continue;
    }
    EXPECT_EQ(found->second.type, family.type) << family_name;
    EXPECT_EQ(found->second.help, family.help) << family_name;
  }
  for (const auto& [family_name, family] : documented)
    EXPECT_TRUE(page.families.contains(family_name)) << family_name << " is documented, but not there";
}

}  // namespace railhead::testing
