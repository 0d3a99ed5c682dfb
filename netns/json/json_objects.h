// JsonObjects splits texts that hold JSON objects one after the other, on a line each or over many, as
// commands print them on many nodes. It does not parse them, so that only one at a time is in memory.
//
// Ownership: `in` is borrowed. Threads: one. Errors of Next(): kMalformed: an object is longer than allowed;
// of a file that cannot be read, the kernel's.
#pragma once

#include <cstddef>
#include <istream>
#include <string>
#include <utility>

#include "netns/base/result.h"

namespace railhead {

class JsonObjects {
 public:
  // `what` names the text in errors; `largest` object: in bytes.
  JsonObjects(std::istream& in, std::string what, std::size_t largest)
      : in_(in), what_(std::move(what)), largest_(largest) {}

  // The next object, up to the brace that closes it. Other text goes to the end of its line, and an
  // incomplete object to the end of the text: the parser then reports the fault. Empty: the text has ended.
  Result<std::string> Next();
  // The name of the last object in errors: the text's name, and the object's number.
  [[nodiscard]] std::string NameOfLast() const { return what_ + "#" + std::to_string(count_); }
  // How many there were.
  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::istream& in_;
  const std::string what_;
  const std::size_t largest_;
  std::size_t count_ = 0;
};

}  // namespace railhead
