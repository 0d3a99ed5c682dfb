// An HTTP client that can be as slow and as unusual as a test wants.
#pragma once

#include <optional>
#include <string>

#include "netns/base/unique_fd.h"

namespace railhead::testing {

struct HttpAnswer {
  int status = 0;
  std::string head;
  std::string body;
};

// Connects to "127.0.0.1:PORT"; invalid when no process listens.
UniqueFd Connect(const std::string& address);
void Write(const UniqueFd& connection, const std::string& bytes);
// Reads until the server closes. nullopt when the data is not an answer, or does not come within a minute.
std::optional<HttpAnswer> ReadAnswer(const UniqueFd& connection);
// One GET; nullopt when no process listens.
std::optional<HttpAnswer> Get(const std::string& address, const std::string& path,
                              const std::string& headers = "");

}  // namespace railhead::testing
