// What was measured: series of values, as lines of JSON that the parts of one run
// (this machine, the guest) write and the report reads.
//
//   {"group":"vf","who":"railhead","what":"ADD","unit":"ms","values":[61.2,60.8]}
//
// Threads: values.
#pragma once

#include <string>
#include <vector>

#include "bench/process.h"
#include "netns/base/result.h"

namespace railhead::bench {

struct Series {
  std::string group;  // where: "startup", "stand-ins", "vf", ...
  std::string who;
  std::string what;
  std::string unit;
  std::vector<double> values;

  // Of at least one value.
  [[nodiscard]] double Median() const;
  [[nodiscard]] double Min() const;
  [[nodiscard]] double Max() const;
  // Of `share` (0.99) of the values: the smallest that is not less than these (nearest rank).
  [[nodiscard]] double Percentile(double share) const;
};

class Record {
 public:
  void Add(const std::string& group, const std::string& who, const std::string& what, const std::string& unit,
           double value);
  // The sum of the parts as `what` and `what` CPU; when there are several, each by itself.
  void AddParts(const std::string& group, const std::string& who, const std::string& what,
                const std::vector<Part>& parts);

  // nullptr: not measured.
  [[nodiscard]] const Series* Find(const std::string& group, const std::string& who,
                                   const std::string& what) const;
  // In the order in which they were first added.
  [[nodiscard]] const std::vector<Series>& all() const { return series_; }

  [[nodiscard]] std::string ToLines() const;
  // Appends to the file; it may have lines of other parts.
  [[nodiscard]] Result<void> AppendTo(const std::string& path) const;
  // Adds the lines of a file. kNotFound, kMalformed or kInvalid, naming file and line.
  Result<void> Read(const std::string& path);

 private:
  std::vector<Series> series_;
};

}  // namespace railhead::bench
