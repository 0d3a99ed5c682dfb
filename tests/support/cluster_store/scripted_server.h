// A server on loopback that answers each request with the next piece of its script, however
// wrong that is.
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
    bool hang = false;          // nothing more is sent, nor closed, till the server goes
  };
  explicit ScriptedServer(std::vector<Step> steps);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Of those that came in so far, head and body.
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] int connections() const { return connections_; }
  // The latest one; ask when its answer is there.
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
