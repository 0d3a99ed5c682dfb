// Tables of records for people, from the list of fields (record.h): FieldRules::column and f.Column().
//
//   const std::vector<Row> rows = TableOf(drains, false);
//
// A cell is the text that JSON would have. A list's cell has its elements, joined with commas. A bool's is
// "yes" or "no", unless it has words. A time's is its age. "-": empty, or absent. Cells hold text as it is:
// the code that shows them escapes it.
//
// Included where a table is made, and nowhere else. Threads: pure functions, but for the clock.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netns/json/record_forms.h"
#include "netns/json/record_write.h"

namespace railhead {

using Row = std::vector<std::string>;

// How long ago, in the largest unit of which there are two: "119s", "2m", "47h", "2d". "-" of a time that was
// never set.
std::string AgeOf(std::chrono::system_clock::time_point time);

// Columns as wide as their widest cell, two blanks between them, the last one as it is. A line each.
std::string Aligned(const std::vector<Row>& rows, const std::string& indent = {});

namespace record {

std::string CellOf(const Json& value);

template <typename T>
std::string TextOf(const T& value, const FieldRules& rules) {
  if constexpr (std::convertible_to<T, std::string_view>) {
    return CellOf(std::string(value));
  } else if constexpr (std::same_as<T, WallTime>) {
    return AgeOf(value);
  } else if constexpr (!std::same_as<T, TypeIn<T>>) {
    const auto* const there = ValueIn(value);
    return there == nullptr ? CellOf(nullptr) : TextOf(*there, rules);
  } else {
    Refusal refusal;
    return CellOf(WriteValue(value, rules, {}, refusal));
  }
}

// Adds the cells of an object to `row`, "-" for an absent value; or the headings.
template <typename T>
class RowWriter {
 public:
  struct Form {
    bool wide = false;
    bool headings = false;
  };
  RowWriter(const T* object, Form form, Row& row) : object_(object), form_(form), row_(row) {}

  void operator()(const char* /*key*/, auto member, const FieldRules& rules = {}) { Add(member, rules); }
  void Implied(const char* /*key*/, auto member, auto /*otherwise*/, const FieldRules& rules = {}) {
    Add(member, rules);
  }
  void Output(const char* /*key*/, auto function, const FieldRules& rules = {}) { Add(function, rules); }
  void Column(const char* heading, auto function, bool wide = false) {
    Add(function, {.column = heading, .wide = wide});
  }
  template <typename C, typename M>
  void Part(M C::*member) {
    Part(member, [](auto& part) { Shape<TypeIn<M>>::List(part); });
  }
  template <typename C, typename M, typename List>
  void Part(M C::*member, List list) {
    using Value = TypeIn<M>;
    RowWriter<Value> part(object_ == nullptr ? nullptr : ValueIn(object_->*member),
                          {form_.wide, form_.headings}, row_);
    list(part);
  }
  void Group(const char* /*key*/, auto list) { list(*this); }
  void Version(std::int64_t /*version*/, const char* /*hint*/ = "") {}

 private:
  void Add(auto function, const FieldRules& rules) {
    if (rules.column == nullptr || (rules.wide && !form_.wide)) return;
    if (form_.headings) {
      row_.emplace_back(rules.column);
    } else {
      row_.push_back(object_ == nullptr ? CellOf(nullptr) : TextOf(std::invoke(function, *object_), rules));
    }
  }

  const T* object_;
  const Form form_;
  Row& row_;
};

template <typename T>
Row RowOf(const T* object, bool wide, bool headings) {
  Row row;
  RowWriter<T> writer(object, {wide, headings}, row);
  Shape<T>::List(writer);
  return row;
}

}  // namespace record

// The first row has the headings. `wide`: with the columns that are in wide tables only.
template <typename T>
std::vector<Row> TableOf(const std::vector<T>& records, bool wide = false) {
  std::vector<Row> rows = {record::RowOf<T>(nullptr, wide, true)};
  for (const T& one : records) rows.push_back(record::RowOf(&one, wide, false));
  return rows;
}

}  // namespace railhead
