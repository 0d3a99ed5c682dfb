// A container runtime that runs nothing: it serves CRI on a socket, keeps sandboxes and
// containers, and writes down what it was asked. Containers end as told.
//
// Ownership: stops serving when destroyed.
// Threads: thread-safe; what a test sets it sets before the calls.
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
  // What it answers from now on, and what the next containers do.
  struct Behaviour {
    bool has_cri = true;  // else Status is not served, as when the CRI plugin is not loaded
    bool starts = true;   // else StartContainer fails
    bool ends = true;     // else it runs until it is removed
    int exit_code = 0;
    std::string log;  // what is in its log file
  };

  // `directory` gets the socket and the logs.
  explicit FakeRuntime(const std::string& directory);
  ~FakeRuntime();
  FakeRuntime(const FakeRuntime&) = delete;
  FakeRuntime& operator=(const FakeRuntime&) = delete;

  [[nodiscard]] const std::string& socket() const;
  void Behave(Behaviour behaviour);
  void AddImage(const std::string& name);
  // Asked for its status so often, it is ready.
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
