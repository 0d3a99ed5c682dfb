// A server on loopback that answers each request with the next piece of its script, even a wrong one.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "netns/base/unique_fd.h"

namespace railhead::testing {

class ScriptedServer {
 public:
  struct Step {
    std::string bytes;          // sent when a whole request is there
    bool close = false;         // and then closed
    bool close_unread = false;  // closed as soon as it is accepted
    bool hang = false;          // sends nothing more and does not close until the server ends
  };
  explicit ScriptedServer(std::vector<Step> steps);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // The number of whole requests (head and body) so far.
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] int connections() const { return connections_; }
  // The latest request; valid once its answer has arrived.
  [[nodiscard]] const std::string& last() const { return last_; }

  // "HTTP/1.1 STATUS X" with a body of known length.
  static std::string Answer(int status, const std::string& body, const std::string& headers = "");

 private:
  void Run();
  bool ReadRequest(int fd);

  const std::vector<Step> steps_;
  UniqueFd listener_;
  UniqueFd stop_read_;
  UniqueFd stop_write_;
  int port_ = 0;
  std::atomic<int> requests_{0};
  std::atomic<int> connections_{0};
  std::string last_;
  std::thread thread_;
};

}  // namespace railhead::testing
