// Measured series of values, as lines of JSON that bench/series.py reads.
//
//   {"group":"node","who":"railheadd","what":"discovery","unit":"ms","values":[21.8,21.9]}
//
// Threads: values.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"

namespace railhead::bench {

class Samples {
 public:
  // The names are literals.
  void Add(const char* group, const char* who, const char* what, const char* unit, double value) {
    const Name name = {group, who, what, unit};
    auto found = std::ranges::find(series_, name, &Series::name);
    if (found == series_.end()) found = series_.insert(series_.end(), {name, {}});
    found->values.push_back(value);
  }

  // The file may have lines of other parts.
  [[nodiscard]] Result<void> AppendTo(const std::string& path) const {
    std::ofstream file(path, std::ios::app);
    for (const auto& [name, values] : series_) {
      const nlohmann::ordered_json line = {
          {"group", name[0]}, {"who", name[1]}, {"what", name[2]}, {"unit", name[3]}, {"values", values}};
      file << line.dump() << "\n";
    }
    if (!file.flush()) return FailSys(errno, "writing " + path);
    return {};
  }

 private:
  using Name = std::array<std::string_view, 4>;
  struct Series {
    Name name;
    std::vector<double> values;
  };
  std::vector<Series> series_;
};

}  // namespace railhead::bench
