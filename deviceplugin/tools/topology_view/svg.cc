#include "deviceplugin/tools/topology_view/svg.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace railhead {
namespace {

// The number of bytes of the character that `text` begins with; 0 when it is no
// valid UTF-8 (RFC 3629) or XML 1.0 does not allow it.
std::size_t CharacterSize(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const auto size = static_cast<std::size_t>(std::countl_one(first));
  if (size < 2 || size > 4 || text.size() < size) return 0;
  std::uint32_t code = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  const bool control = code < 0xa0;
  const bool none = code == 0xfffe || code == 0xffff || code > 0x10ffff;
  return code < kSmallest[size] || surrogate || control || none ? 0 : size;
}

// The characters of `text`, each as a piece of it; "?" for what is none.
template <typename Use>
void ForEachCharacter(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t size = CharacterSize(text);
    use(size == 0 ? std::string_view("?") : text.substr(0, size));
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
}

std::string Attribute(const char* name, int value) {
  return std::string(" ") + name + "=\"" + std::to_string(value) + "\"";
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  std::string escaped;
  ForEachCharacter(text, [&](std::string_view character) {
    if (character == "&") {
      escaped += "&amp;";
    } else if (character == "<") {
      escaped += "&lt;";
    } else if (character == ">") {
      escaped += "&gt;";
    } else if (character == "\"") {
      escaped += "&quot;";
    } else if (character == "'") {
      escaped += "&#39;";
    } else {
      escaped += character;
    }
  });
  return escaped;
}

std::string Shortened(std::string_view text, std::size_t most) {
  std::size_t count = 0;
  std::string kept;
  std::string shorter;
  ForEachCharacter(text, [&](std::string_view character) {
    if (++count == most) shorter = kept + "…";
    if (count <= most) kept += character;
  });
  return count > most ? shorter : kept;
}

void Svg::Rectangle(const Box& box, std::string_view style, std::string_view title) {
  body_ += "<rect class=\"" + EscapeXml(style) + "\"" + Attribute("x", box.x) + Attribute("y", box.y) +
           Attribute("width", box.width) + Attribute("height", box.height) +
           Attribute("rx", box.height < 20 ? 1 : 3);
  body_ += title.empty() ? "/>\n" : "><title>" + EscapeXml(title) + "</title></rect>\n";
}

void Svg::Text(int x, int y, std::string_view text, std::string_view style) {
  body_ += "<text class=\"" + EscapeXml(style) + "\"" + Attribute("x", x) + Attribute("y", y) + ">" +
           EscapeXml(text) + "</text>\n";
}

std::string Svg::Document(int width, int height, std::string_view title, std::string_view style_sheet) const {
  const std::string size = std::to_string(width) + " " + std::to_string(height);
  std::string document =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"";
  document += Attribute("width", width) + Attribute("height", height) + " viewBox=\"0 0 " + size + "\">\n";
  document += "<title>" + EscapeXml(title) + "</title>\n<style>" + std::string(style_sheet) + "</style>\n";
  return document + body_ + "</svg>\n";
}

}  // namespace railhead
