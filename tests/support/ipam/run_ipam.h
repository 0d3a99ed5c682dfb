// Runs railhead-ipam as a runtime does: a process, its environment, a
// configuration on standard input.
// Threads: thread-safe. A failure to start it ends the test program.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace railhead::testing {

struct Answer {
  int status = 0;  // exit status; -signal when killed by one
  std::string out;
  std::string err;

  // The output as JSON; null when the output is not JSON.
  [[nodiscard]] nlohmann::json Json() const;
  // "10.0.0.2/24", or the status and message of the error.
  [[nodiscard]] std::string Address() const;
  // "0 10.0.0.2/24 via 10.0.0.1, 1 ...": the link, the address and the gateway of each. After an error, the
  // same text as Address().
  [[nodiscard]] std::string Addresses() const;
  // "7: message; details"
  [[nodiscard]] std::string Error() const;
};

struct Call {
  std::string command;
  std::string container = "abc";
  std::string config;
  std::string ifname = "net1";
  std::string netns = "/proc/self/ns/net";
  std::string args;  // CNI_ARGS
};

// `root` becomes RAILHEAD_ROOT.
Answer RunIpam(const std::string& root, const Call& call);
// Runs all calls at the same time.
std::vector<Answer> RunIpamAtOnce(const std::string& root, const std::vector<Call>& calls);
// Runs it with a command line.
Answer RunIpamWith(std::vector<std::string> arguments);

}  // namespace railhead::testing
