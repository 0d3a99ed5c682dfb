// Svg: boxes, small squares and lines of text, collected into an SVG document.
//
// Coordinates are pixels from the top left corner. Text is escaped here and nowhere else;
// what is no valid UTF-8 or not allowed in XML becomes a question mark.
// Threads: not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace railhead {

// For text between tags and in attributes.
std::string EscapeXml(std::string_view text);

// The first `most` characters, the last of them "…" when there were more.
std::string Shortened(std::string_view text, std::size_t most);

class Svg {
 public:
  struct Box {
    int x = 0;
    int y = 0;
    int width = 0;
    int height = 0;
  };

  // `style` is a class of the style sheet; `title` is shown when pointed at.
  void Rectangle(const Box& box, std::string_view style, std::string_view title = {});
  void Text(int x, int y, std::string_view text, std::string_view style = "t");

  // The whole document. `style_sheet` is CSS of our own, not escaped.
  [[nodiscard]] std::string Document(int width, int height, std::string_view title,
                                     std::string_view style_sheet) const;

 private:
  std::string body_;
};

}  // namespace railhead
