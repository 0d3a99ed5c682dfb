#include "tests/support/daemon/daemon_process.h"

#include <utility>

#include "netns/base/files.h"
#include "tests/support/eventually.h"

namespace railhead::testing {

using Clock = std::chrono::steady_clock;

Clock::time_point Soon() {
  return Clock::now() + std::chrono::seconds(60);
}

std::unique_ptr<Process> StartOn(const std::string& root, std::vector<std::string> arguments,
                                 std::vector<std::string> environment) {
  environment.push_back("RAILHEAD_ROOT=" + root);
  return std::make_unique<Process>(
      ProcessSpec{.arguments = std::move(arguments), .environment = std::move(environment)});
}

::testing::AssertionResult Logs(const Process& process, const std::string& text) {
  if (Eventually([&] { return process.err().find(text) != std::string::npos; }))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "nothing says \"" << text << "\":\n" << process.err();
}

ProcessTest::ProcessTest() {
  sysfs_.Write("/etc/railhead/fabric.json", TwoRailFabric());
}

std::unique_ptr<Process> ProcessTest::Run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), RAILHEADD);
  return StartOn(sysfs_.directory(), std::move(arguments), environment_);
}

KubeletTest::KubeletTest() {
  (void)MakeDirectories(directory_);
}

std::size_t KubeletTest::OurSockets() const {
  std::size_t count = 0;
  const auto names = ListDirectory(directory_).value().value_or(std::vector<std::string>{});
  for (const std::string& name : names) count += name.rfind("railhead-", 0) == 0 ? 1 : 0;
  return count;
}

std::unique_ptr<Process> KubeletTest::RunDaemon(std::vector<std::string> more) {
  more.insert(more.begin(), {"--kubelet-dir", "/kubelet"});
  return Run(std::move(more));
}

}  // namespace railhead::testing
