// Texts that hold JSON objects one after the other, on a line each or over many, as commands print them
// on many nodes: taken apart without being read, so that one at a time is in memory.
//
// Ownership: `in` is borrowed. Threads: one. Errors of Next(): kMalformed: an object is longer than allowed.
#pragma once

#include <cstddef>
#include <istream>
#include <string>

#include "netns/base/result.h"

namespace railhead {

class JsonObjects {
 public:
  // `what` names the text in errors; `largest` object: in bytes.
  JsonObjects(std::istream& in, std::string what, std::size_t largest)
      : in_(in), what_(std::move(what)), largest_(largest) {}

  // The next object, up to the brace that closes it; what is none goes to the end of its line, what is not
  // whole to the end of the text: the parser says what is wrong with it. Empty: that was all.
  Result<std::string> Next();
  // How the object that came last is called in errors: the text's name, and which of its objects it is.
  [[nodiscard]] std::string NameOfLast() const { return what_ + "#" + std::to_string(count_); }

 private:
  std::istream& in_;
  const std::string what_;
  const std::size_t largest_;
  std::size_t count_ = 0;
};

}  // namespace railhead
