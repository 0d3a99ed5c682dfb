// railheadd as a process, on a node with two rails, with kubelet's directory.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/daemon/two_rails.h"
#include "tests/support/process.h"

namespace railhead::testing {

inline constexpr const char* kResource = "railhead.io/roce";

// A generous deadline, since the machine may be busy.
std::chrono::steady_clock::time_point Soon();

// Starts a program on that root. `environment`: "NAME=VALUE" each, in addition to RAILHEAD_ROOT.
std::unique_ptr<Process> StartOn(const std::string& root, std::vector<std::string> arguments,
                                 std::vector<std::string> environment = {});

// Whether the process's errors come to hold `text`. What a running process does may be seen before its
// message about it.
::testing::AssertionResult Logs(const Process& process, const std::string& text);

class ProcessTest : public TwoRails {
 protected:
  ProcessTest();
  std::unique_ptr<Process> Run(std::vector<std::string> arguments = {});

  std::vector<std::string> environment_;  // of the programs that Run() starts
};

// A process test with kubelet's directory.
class KubeletTest : public ProcessTest {
 protected:
  KubeletTest();
  [[nodiscard]] std::size_t OurSockets() const;
  std::unique_ptr<Process> RunDaemon(std::vector<std::string> more = {});

  const std::string directory_ = root_.Path("/kubelet");
};

}  // namespace railhead::testing
