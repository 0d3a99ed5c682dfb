// CharIterator: an input iterator over text that comes in pieces, for nlohmann::json's parsers.
//
// Text has `bool AtEnd()`, which may fetch the next piece, `const char& Get() const` and `void Next()`.
// Ownership: points to the text, which outlives it. All iterators of one text are at the same place. nullptr
// is the end of any text. Threads: one.
#pragma once

#include <cstddef>
#include <iterator>

namespace railhead {

template <typename Text>
class CharIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  explicit CharIterator(Text* text) : text_(text) {}
  reference operator*() const { return text_->Get(); }
  CharIterator& operator++() {
    text_->Next();
    return *this;
  }
  // The end equals only what is at the end, as parsers ask.
  bool operator==(const CharIterator& other) const { return AtEnd() == other.AtEnd(); }

 private:
  [[nodiscard]] bool AtEnd() const { return text_ == nullptr || text_->AtEnd(); }

  Text* text_;
};

}  // namespace railhead
