// The stand-in's control socket: one JSON object in, one out, per connection.
//
//   {"command":"allocate","resource":"railhead.io/roce","count":2}
//   {"ok":true,"result":{...}}   or   {"ok":false,"error":"..."}
//
// Threads: Ask() is thread-safe; Serve() runs on the calling thread.
#pragma once

#include <functional>
#include <string>

#include "netns/base/result.h"

namespace railhead::testing {

// Answers requests, each on a thread of its own, until `stop_fd` becomes readable.
// `answer` gets the request's text and returns the answer's.
Result<void> ServeControl(const std::string& path, int stop_fd,
                          const std::function<std::string(const std::string&)>& answer);

Result<std::string> AskControl(const std::string& path, const std::string& request);

}  // namespace railhead::testing
