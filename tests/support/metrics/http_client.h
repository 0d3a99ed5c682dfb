// A client that can be as slow and as odd as a test wants.
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

// To "127.0.0.1:PORT"; invalid when nobody listens.
UniqueFd Connect(const std::string& address);
void Write(const UniqueFd& connection, const std::string& bytes);
// All until the other side's end; nullopt when that is no answer, or does not come in a minute.
std::optional<HttpAnswer> ReadAnswer(const UniqueFd& connection);
// One GET; nullopt when nobody listens.
std::optional<HttpAnswer> Get(const std::string& address, const std::string& path,
                              const std::string& headers = "");

}  // namespace railhead::testing
