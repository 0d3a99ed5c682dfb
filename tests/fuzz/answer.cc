// An answer of the Kubernetes API, as it comes in pieces: the first byte says how large they are.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "deviceplugin/support/http/answer_reader.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

constexpr std::size_t kMostBytes = 4096;

struct Seen {
  bool done = false;
  bool refused = false;
  int status = 0;
  std::string body;

  bool operator==(const Seen&) const = default;
};

// `most`: as for AnswerReader.
Seen Read(std::string_view bytes, std::size_t piece, std::optional<std::size_t> most) {
  http::AnswerReader reader(most);
  Seen seen;
  for (std::size_t at = 0; at < bytes.size() && !reader.IsDone() && !seen.refused; at += piece) {
    seen.refused = reader.Take(bytes.substr(at, piece)).has_value();
    if (!most) seen.body += reader.TakeBody();
  }
  if (seen.refused) return {.refused = true};
  seen.done = reader.IsDone() || reader.End();
  if (!seen.done) return {};
  seen.status = reader.status();
  const http::HttpAnswer answer = reader.Release();
  seen.body += answer.body;
  Require(answer.status == seen.status, "an answer has one status");
  Require(answer.retry_after.find_first_of("\r\n") == std::string::npos, "a header is one line");
  return seen;
}

void ReadAll(const std::string& bytes) {
  if (bytes.empty()) return;
  const std::size_t piece = std::max<std::size_t>(1, static_cast<unsigned char>(bytes[0]));
  std::string_view answer = bytes;
  answer.remove_prefix(1);
  const Seen whole = Read(answer, std::max<std::size_t>(1, answer.size()), kMostBytes);
  Require(whole.body.size() <= kMostBytes, "a body has a limit");
  Require(whole.body.size() <= answer.size(), "a body is of what has come");
  const Seen pieces = Read(answer, piece, kMostBytes);
  // What is no HTTP is refused in one piece, and in several only at the end of what may be a head.
  if (whole.refused || pieces.refused) {
    Require(!whole.done && !pieces.done, "what is refused in pieces is no answer in one");
  } else {
    Require(pieces == whole, "the size of the pieces changes nothing");
  }
  const Seen stream = Read(answer, piece, std::nullopt);
  if (whole.done) Require(stream == whole, "a stream has the body that an answer has");
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::fuzz::ReadAll(railhead::fuzz::TextOf(data, size));
  return 0;
}
