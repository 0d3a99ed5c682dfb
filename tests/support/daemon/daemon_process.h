// railheadd as a process, on a node with two rails, with kubelet's directory.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/daemon/two_rails.h"

namespace railhead::testing {

inline constexpr const char* kResource = "railhead.io/roce";

// Generous: the machine may be busy.
std::chrono::steady_clock::time_point Soon();

// A child with its output in files.
class Child {
 public:
  // `environment`: "NAME=VALUE" each, beside RAILHEAD_ROOT.
  Child(const std::string& directory, const std::string& root, const std::vector<std::string>& arguments,
        std::vector<std::string> environment = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Exit status, or 128 + signal.
  int Wait();
  int Stop();
  void Kill();
  void Signal(int signal) const;
  [[nodiscard]] bool HasEnded() const;
  // What it has open of that path. While a read of it waits, it is open.
  [[nodiscard]] bool HasOpen(const std::string& path) const;
  // The most memory that it has had so far.
  [[nodiscard]] std::size_t PeakBytes() const;
  [[nodiscard]] std::string out() const;
  [[nodiscard]] std::string err() const;

 private:
  const std::string out_path_;
  const std::string err_path_;
  pid_t pid_ = -1;
};

class ProcessTest : public TwoRails {
 protected:
  ProcessTest();
  std::unique_ptr<Child> Run(std::vector<std::string> arguments = {});

  int runs_ = 0;
  std::vector<std::string> environment_;  // of the programs that Run() starts
};

// With kubelet's directory.
class KubeletTest : public ProcessTest {
 protected:
  KubeletTest();
  [[nodiscard]] std::size_t OurSockets() const;
  std::unique_ptr<Child> RunDaemon(std::vector<std::string> more = {});

  const std::string directory_ = root_.Path("/kubelet");
  std::string sockets_ = directory_;  // where railheadd's are
};

}  // namespace railhead::testing
