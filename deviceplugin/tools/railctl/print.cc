#include "deviceplugin/tools/railctl/print.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <optional>

namespace railhead::railctl {

namespace {

constexpr std::size_t kLongestCharacter = 4;
constexpr std::size_t kLongestColour = 6;  // ESC [ 1 0 0 m
constexpr char kEscape = '\x1b';

std::string Escaped(const char* format, unsigned int number) {
  std::array<char, 16> text{};
  (void)std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

struct Character {
  std::uint32_t code = 0;
  std::size_t size = 0;
};

// How many bytes a character has that begins so; 0: none does.
std::size_t SizeOf(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  if (first >= 0xf0 && first < 0xf5) return kLongestCharacter;
  return 0;
}

// nullopt: no UTF-8 (RFC 3629). `text` has as many bytes as the first one says.
std::optional<Character> CharacterOf(std::string_view text) {
  const auto first = static_cast<std::uint8_t>(text.front());
  const std::size_t size = SizeOf(first);
  if (size == 0 || text.size() < size) return std::nullopt;
  std::uint32_t code = size == 1 ? first : first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    if ((byte & 0xc0U) != 0x80U) return std::nullopt;
    code = code << 6U | (byte & 0x3fU);
  }
  constexpr std::array<std::uint32_t, kLongestCharacter> kLeast = {0, 0x80, 0x800, 0x10000};
  if (code < kLeast.at(size - 1) || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return std::nullopt;
  return Character{code, size};
}

bool IsHarmful(std::uint32_t code) {
  if (code == '\n' || code == '\t') return false;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true;
  // Unicode Standard Annex 9: they show text in another order than it is; and separators of lines.
  return code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

// The size of the ESC [ NUMBER m at the beginning. 0: the text begins otherwise. nullopt: more text is
// needed.
std::optional<std::size_t> ColourAt(std::string_view text) {
  for (std::size_t i = 1; i < kLongestColour; ++i) {
    if (i == text.size()) return std::nullopt;
    const char c = text[i];
    if (i == 1 ? c != '[' : c != 'm' && (c < '0' || c > '9')) return 0;
    if (i > 1 && c == 'm') return i + 1;
  }
  return 0;
}

}  // namespace

std::string PrintableText::Next(std::string_view piece) {
  const std::string text = held_.append(piece);
  held_.clear();
  std::string shown;
  for (std::string_view rest = text; !rest.empty();) {
    const std::optional<std::size_t> colour = colours_ && rest.front() == kEscape ? ColourAt(rest) : 0;
    const std::size_t size = SizeOf(static_cast<std::uint8_t>(rest.front()));
    if (!colour || rest.size() < size) {
      held_ = rest;
      return shown;
    }
    const auto character = CharacterOf(rest);
    if (*colour > 0) {
      shown.append(rest.substr(0, *colour));
      rest.remove_prefix(*colour);
    } else if (!character) {
      shown += Escaped("\\x%02x", static_cast<std::uint8_t>(rest.front()));
      rest.remove_prefix(1);
    } else {
      const auto bytes = rest.substr(0, character->size);
      shown += IsHarmful(character->code) ? Escaped("\\u%04x", character->code) : std::string(bytes);
      rest.remove_prefix(character->size);
    }
  }
  return shown;
}

std::string PrintableText::Rest() {
  std::string shown;
  for (const char byte : held_) shown += Escaped("\\x%02x", static_cast<std::uint8_t>(byte));
  held_.clear();
  return shown;
}

std::string OneLine(std::string_view text) {
  PrintableText printable(false);
  const std::string shown = printable.Next(text) + printable.Rest();
  std::string line;
  for (const char c : shown) {
    if (c == '\n' || c == '\t') {
      line += Escaped("\\u%04x", static_cast<std::uint8_t>(c));
    } else {
      line += c;
    }
  }
  return line;
}

// A stream of stdio in the place of `standard`, whose descriptor it writes to.
struct EscapedOutput::Stream {
  Stream(FILE** standard_stream, int its_fd, int buffering)
      : standard(standard_stream), before(*standard_stream), fd(its_fd), text(::isatty(its_fd) == 1) {
    cookie_io_functions_t calls{};
    calls.write = [](void* self, const char* data, std::size_t size) {
      auto* stream = static_cast<Stream*>(self);
      return stream->Write(stream->text.Next({data, size})) ? static_cast<ssize_t>(size) : 0;
    };
    FILE* file = ::fopencookie(this, "w", calls);
    if (file == nullptr) return;
    (void)::setvbuf(file, nullptr, ::isatty(fd) == 1 && buffering == _IOFBF ? _IOLBF : buffering, BUFSIZ);
    *standard = file;
  }
  ~Stream() {
    if (*standard == before) return;
    (void)std::fclose(*standard);
    (void)Write(text.Rest());
    *standard = before;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] bool Write(std::string_view shown) const {
    while (!shown.empty()) {
      const ssize_t written = ::write(fd, shown.data(), shown.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      shown.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  FILE** const standard;
  FILE* const before;
  const int fd;
  PrintableText text;
};

EscapedOutput::EscapedOutput()
    : out_(std::make_unique<Stream>(&stdout, STDOUT_FILENO, _IOFBF)),
      err_(std::make_unique<Stream>(&stderr, STDERR_FILENO, _IONBF)) {}

EscapedOutput::~EscapedOutput() = default;

void ClearScreen() {
  constexpr std::string_view kTopLeftAndClear = "\x1b[H\x1b[2J";
  (void)!::write(STDOUT_FILENO, kTopLeftAndClear.data(), kTopLeftAndClear.size());
}

void SayProgress(const std::string& text) {
  if (::isatty(STDERR_FILENO) == 1) (void)std::fprintf(stderr, "%s\n", OneLine(text).c_str());
}

}  // namespace railhead::railctl
