#include "tests/support/nccl/topology_parser.h"

#include <algorithm>

namespace railhead {
namespace {

constexpr std::string_view kCommentStart = "<!-- ";
constexpr std::string_view kCommentEnd = "-->";

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool IsBetweenElements(char c) {
  return c == ' ' || c == '\n' || c == '\r';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  ParsedTopology Parse() {
    while (!parsed_.error) {
      SkipBetween();
      if (parsed_.error || at_ == text_.size()) break;
      if (Peek() != '<') {
        Stop("there is text between elements");
      } else if (text_.substr(at_).starts_with("</")) {
        Close();
      } else {
        Open();
      }
    }
    if (!parsed_.error && !open_.empty()) {
      Stop("the text ends inside of <" + parsed_.elements[open_.back()].name + ">");
    }
    return std::move(parsed_);
  }

 private:
  [[nodiscard]] char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void Stop(const std::string& why) {
    if (!parsed_.error) parsed_.error = "line " + std::to_string(line_) + ": " + why;
  }

  // Reports that something else was expected at this place.
  void StopAt(const std::string& expected) {
    if (at_ == text_.size()) return Stop("the text ends where " + expected + " is expected");
    if (Peek() == '\t') return Stop("there is a tab");
    if (Peek() == '\n' || Peek() == '\r') return Stop("an element goes on in the next line");
    const char c = Peek();
    const std::string shown = c > ' ' && c <= '~' ? "'" + std::string(1, c) + "'"
                              : c == ' '          ? "a blank"
                                                  : "a byte";
    Stop("there is " + shown + " where " + expected + " is expected");
  }

  void SkipBetween() {
    while (at_ < text_.size() && !parsed_.error) {
      if (text_.substr(at_).starts_with(kCommentStart)) {
        SkipComment();
      } else if (IsBetweenElements(Peek())) {
        if (Peek() == '\n') ++line_;
        ++at_;
      } else {
        return;
      }
    }
  }

  void SkipComment() {
    const auto end = text_.find(kCommentEnd, at_ + kCommentStart.size());
    if (end == std::string_view::npos) return Stop("a comment does not end");
    line_ += static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                                 text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end + kCommentEnd.size();
  }

  std::string Name() {
    const std::size_t start = at_;
    while (at_ < text_.size() && IsNameCharacter(text_[at_])) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }

  bool Take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  void Close() {
    at_ += 2;
    const std::string name = Name();
    if (!Take(">")) return StopAt("'>' after </" + name);
    if (open_.empty() || parsed_.elements[open_.back()].name != name) {
      return Stop("</" + name + "> closes what is not open");
    }
    open_.pop_back();
  }

  void Open() {
    ++at_;
    TopologyElement element;
    element.line = line_;
    element.name = Name();
    if (element.name.empty()) return StopAt("the name of an element");
    while (Take(" ")) {
      Attribute(element);
      if (parsed_.error) return;
    }
    const bool closed = Take("/");
    if (!Take(">")) return StopAt("' ', '/' or '>' in <" + element.name);
    const std::size_t number = parsed_.elements.size();
    if (!open_.empty()) {
      element.parent = open_.back();
      parsed_.elements[open_.back()].children.push_back(number);
    }
    if (!closed) open_.push_back(number);
    parsed_.elements.push_back(std::move(element));
  }

  void Attribute(TopologyElement& element) {
    const std::string name = Name();
    if (name.empty()) return StopAt("the name of an attribute of <" + element.name);
    if (!Take("=")) return StopAt("'=' after " + name);
    if (!Take("\"")) return StopAt("'\"' after " + name + "=");
    const std::size_t start = at_;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_];
      // NCCL takes a value literally, entities too. None of the values that it reads contains these
      // characters.
      if (c < ' ' || c > '~' || c == '<' || c == '>' || c == '&') return StopAt("the value of " + name);
      ++at_;
    }
    const auto value = text_.substr(start, at_ - start);
    if (!Take("\"")) return StopAt("'\"'");
    element.attributes.emplace_back(name, value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::vector<std::size_t> open_;
  ParsedTopology parsed_;
};

}  // namespace

const std::string* TopologyElement::Find(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& one) { return one.first == attribute; });
  return found == attributes.end() ? nullptr : &found->second;
}

ParsedTopology ParseTopology(std::string_view text) {
  return Parser(text).Parse();
}

}  // namespace railhead
