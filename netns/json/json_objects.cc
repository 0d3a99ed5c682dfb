#include "netns/json/json_objects.h"

#include <algorithm>
#include <ios>
#include <streambuf>

namespace railhead {
namespace {

using Traits = std::istream::traits_type;

bool IsBetweenObjects(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Tells after each character whether the object is whole.
class ObjectEnd {
 public:
  bool Ends(char c) {
    if (escaped_) {
      escaped_ = false;
    } else if (quoted_) {
      escaped_ = c == '\\';
      quoted_ = c != '"';
    } else if (c == '"') {
      quoted_ = true;
    } else if (c == '{') {
      ++depth_;
    } else if (c == '}') {
      depth_ = std::max(depth_ - 1, 0);
    } else if (depth_ == 0) {
      return c == '\n';
    }
    return depth_ == 0 && c == '}' && !quoted_;
  }

 private:
  int depth_ = 0;
  bool quoted_ = false;
  bool escaped_ = false;
};

}  // namespace

Result<std::string> JsonObjects::Next() {
  std::streambuf* const buffer = in_.rdbuf();
  std::string text;
  ObjectEnd end;
  try {
    for (auto next = buffer->sbumpc(); next != Traits::eof(); next = buffer->sbumpc()) {
      const char c = Traits::to_char_type(next);
      if (text.empty() && IsBetweenObjects(c)) continue;
      text += c;
      if (end.Ends(c)) break;
      if (text.size() > largest_)
        return Fail(ErrorCode::kMalformed,
                    what_ + ": an object of more than " + std::to_string(largest_ >> 20U) + " MiB");
    }
  } catch (const std::ios_base::failure& failure) {
    // libstdc++'s file buffer has no other way to report a failed read, as of a directory.
    return FailSys(failure.code().value(), what_ + ": reading it");
  }
  if (!text.empty()) ++count_;
  return text;
}

}  // namespace railhead
