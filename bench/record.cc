#include "bench/record.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::bench {

double Series::Median() const {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double Series::Min() const {
  return *std::min_element(values.begin(), values.end());
}

double Series::Max() const {
  return *std::max_element(values.begin(), values.end());
}

double Series::Percentile(double share) const {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

void Record::Add(const std::string& group, const std::string& who, const std::string& what,
                 const std::string& unit, double value) {
  auto found = std::find_if(series_.begin(), series_.end(), [&](const Series& series) {
    return series.group == group && series.who == who && series.what == what;
  });
  if (found == series_.end()) found = series_.insert(series_.end(), {group, who, what, unit, {}});
  found->values.push_back(value);
}

void Record::AddParts(const std::string& group, const std::string& who, const std::string& what,
                      const std::vector<Part>& parts) {
  Cost all;
  for (const auto& part : parts) all += part.cost;
  Add(group, who, what, "ms", all.wall_ms);
  Add(group, who, what + " CPU", "ms", all.cpu_ms);
  if (parts.size() == 1) return;
  for (const auto& part : parts)
    Add(group, std::string("- ").append(part.name), what, "ms", part.cost.wall_ms);
}

const Series* Record::Find(const std::string& group, const std::string& who, const std::string& what) const {
  const auto found = std::find_if(series_.begin(), series_.end(), [&](const Series& series) {
    return series.group == group && series.who == who && series.what == what;
  });
  return found == series_.end() || found->values.empty() ? nullptr : &*found;
}

std::string Record::ToLines() const {
  std::string lines;
  for (const auto& series : series_) {
    nlohmann::ordered_json line;
    line["group"] = series.group;
    line["who"] = series.who;
    line["what"] = series.what;
    line["unit"] = series.unit;
    line["values"] = series.values;
    lines += line.dump() + "\n";
  }
  return lines;
}

Result<void> Record::AppendTo(const std::string& path) const {
  std::ofstream file(path, std::ios::app);
  file << ToLines();
  if (!file.flush()) return FailSys(errno, "writing " + path);
  return {};
}

Result<void> Record::Read(const std::string& path) {
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return Fail(ErrorCode::kNotFound, "there is no " + path, "has that part been measured?");
  int number = 0;
  for (const auto& line : Split(*text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const auto document = RH_TRY(JsonDocument::Parse(line, path + ", line " + std::to_string(number)));
    JsonReader reader = document.Root();
    const std::string group = reader.RequiredString("group");
    const std::string who = reader.RequiredString("who");
    const std::string what = reader.RequiredString("what");
    const std::string unit = reader.RequiredString("unit");
    if (const auto* values = reader.Raw("values"); values != nullptr && values->is_array()) {
      for (const auto& value : *values) {
        if (!value.is_number()) {
          reader.Fail("values", "holds something that is no number");
        } else {
          Add(group, who, what, unit, value.get<double>());
        }
      }
    } else {
      reader.Fail("values", "must be a list of numbers");
    }
    reader.Close();
    RH_TRY(reader.status());
  }
  return {};
}

}  // namespace railhead::bench
