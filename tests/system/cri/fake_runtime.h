// A container runtime that runs nothing. It serves CRI on a socket, remembers sandboxes and containers, and
// records its calls. Containers end as the test sets.
//
// Ownership: stops serving when destroyed.
// Threads: thread-safe, but a test must set everything before the calls.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/system/cri/proto/api.pb.h"

namespace railhead::testing {

class FakeRuntime {
 public:
  // Its answers from now on, and the behaviour of the next containers.
  struct Behaviour {
    bool has_cri = true;  // else it does not serve Status, as without the CRI plugin
    bool starts = true;   // else StartContainer fails
    bool ends = true;     // else it runs until it is removed
    int exit_code = 0;
    std::string log;  // the content of its log file
  };

  // `directory` will have the socket and the logs.
  explicit FakeRuntime(const std::string& directory);
  ~FakeRuntime();
  FakeRuntime(const FakeRuntime&) = delete;
  FakeRuntime& operator=(const FakeRuntime&) = delete;

  [[nodiscard]] const std::string& socket() const;
  void Behave(Behaviour behaviour);
  void AddImage(const std::string& name);
  // It is ready after this number of Status calls.
  void ReadyAfter(int calls);

  [[nodiscard]] std::set<std::string> Sandboxes() const;
  [[nodiscard]] std::set<std::string> Containers() const;
  [[nodiscard]] runtime::v1::PodSandboxConfig LastPod() const;
  [[nodiscard]] runtime::v1::CreateContainerRequest LastContainer() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::testing
