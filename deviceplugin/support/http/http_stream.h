// HttpStream: an answer that is read while it comes in, such as a list that is too large to hold, or a watch
// of the Kubernetes API, which ends after minutes. It has a connection of its own.
//
// The client's `most_bytes` is not asked: the caller drops what it has read.
//
// Threads: one at a time. Errors: those of Connection, and kMalformed for what is not HTTP. After an error
// other than kTimeout the stream is of no more use.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "deviceplugin/support/http/answer_reader.h"
#include "deviceplugin/support/http/connection.h"
#include "deviceplugin/support/http/http_client.h"
#include "netns/base/result.h"

namespace railhead::http {

class HttpStream {
 public:
  // Sends the call, and waits for the answer's head. settings.timeout is the limit of both.
  static Result<HttpStream> Open(const HttpClientSettings& settings, const HttpCall& call);

  [[nodiscard]] int status() const { return reader_->status(); }
  // The next bytes of the body; nullopt: it has ended. kTimeout: none came until then.
  Result<std::optional<std::string>> Read(Deadline deadline);
  // The answer with the rest of its body, if that is small: of a refusal.
  Result<HttpAnswer> ReadRest(Deadline deadline);

 private:
  HttpStream(std::unique_ptr<Connection> connection, HttpEndpoint endpoint)
      : connection_(std::move(connection)), endpoint_(std::move(endpoint)) {}
  // false: the answer has ended.
  Result<bool> ReadMore(Deadline deadline);

  std::unique_ptr<Connection> connection_;
  HttpEndpoint endpoint_;
  std::unique_ptr<AnswerReader> reader_ = std::make_unique<AnswerReader>(std::nullopt);
};

}  // namespace railhead::http
