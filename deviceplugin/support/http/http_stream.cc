#include "deviceplugin/support/http/http_stream.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

namespace railhead::http {
namespace {

// Of a refusal: more of it tells nobody anything.
constexpr std::size_t kMostRest = std::size_t{64} << 10;

}  // namespace

Result<HttpStream> HttpStream::Open(const HttpClientSettings& settings, const HttpCall& call) {
  const Deadline deadline = std::chrono::steady_clock::now() + settings.timeout;
  HttpStream stream(RH_TRY(Connection::Open(settings.endpoint, settings.tls, deadline)), settings.endpoint);
  RH_TRY(stream.connection_->Write(FormatHttpCall(call, settings.endpoint), deadline));
  while (!stream.reader_->HasHead()) {
    const bool more = RH_TRY(stream.ReadMore(deadline));
    if (!more && !stream.reader_->HasHead()) {
      return Fail(ErrorCode::kUnavailable,
                  settings.endpoint.ToString() + " has closed the connection before its answer");
    }
  }
  return stream;
}

Result<bool> HttpStream::ReadMore(Deadline deadline) {
  if (reader_->IsDone()) return false;
  std::array<char, kReadSize> buffer;
  const std::size_t got = RH_TRY(connection_->Read(buffer.data(), buffer.size(), deadline));
  if (got == 0 && !reader_->End()) {
    return Fail(ErrorCode::kUnavailable,
                endpoint_.ToString() + " has closed the connection in the middle of its answer");
  }
  if (const auto wrong = reader_->Take({buffer.data(), got})) {
    return Fail(ErrorCode::kMalformed, "the answer of " + endpoint_.ToString() + ": " + *wrong,
                "see that this is the address of the API and not of something else");
  }
  return true;
}

Result<std::optional<std::string>> HttpStream::Read(Deadline deadline) {
  for (;;) {
    std::string bytes = reader_->TakeBody();
    if (!bytes.empty()) return bytes;
    if (!RH_TRY(ReadMore(deadline))) return std::nullopt;
  }
}

Result<HttpAnswer> HttpStream::ReadRest(Deadline deadline) {
  HttpAnswer answer;
  answer.status = status();
  answer.from = endpoint_.ToString();
  while (answer.body.size() < kMostRest) {
    const auto bytes = RH_TRY(Read(deadline));
    if (!bytes) break;
    answer.body += *bytes;
  }
  return answer;
}

}  // namespace railhead::http
