// ProbeWorkers: reads that hardware may not answer, each with a deadline. So a sick device costs its own
// answers and nothing else.
//
// Each device has a thread of its own, from its first read on. A read that misses its deadline goes on in
// that thread, since nothing can interrupt it in the kernel. Until it has ended, the device's further reads
// fail at once. A read may so outlive its caller: it owns what it uses.
//
// Ownership: owns its threads; a thread that hangs is left behind. Threads: thread-safe.
// Errors: kTimeout for a device that does not answer, kLimited when the machine has no thread left.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

#include "netns/base/mutex.h"
#include "netns/base/result.h"

namespace railhead {

class ProbeWorkers {
 public:
  // Firmware answers within milliseconds, and within a second or two while it resets a function.
  static constexpr std::chrono::seconds kLongestAnswer{5};

  explicit ProbeWorkers(std::chrono::milliseconds longest_answer = kLongestAnswer)
      : longest_answer_(longest_answer) {}
  ProbeWorkers(const ProbeWorkers&) = delete;
  ProbeWorkers& operator=(const ProbeWorkers&) = delete;
  // Does not wait for a read that hangs.
  ~ProbeWorkers();

  // What `read` returns for `device`, which is its PF's address.
  template <typename Read>
  Result<std::invoke_result_t<Read>> Ask(const std::string& device, Read read) {
    auto answer = std::make_shared<std::optional<std::invoke_result_t<Read>>>();
    RH_TRY(Run(device, [answer, read = std::move(read)] { answer->emplace(read()); }));
    return std::move(**answer);
  }
  // Ends the threads of other devices.
  void KeepOnly(const std::set<std::string>& devices);

 private:
  class Worker;

  Result<void> Run(const std::string& device, std::function<void()> read);
  Result<std::shared_ptr<Worker>> WorkerOf(const std::string& device);

  const std::chrono::milliseconds longest_answer_;
  Mutex mutex_;  // of the map
  std::map<std::string, std::shared_ptr<Worker>> workers_ RH_GUARDED_BY(mutex_);
};

}  // namespace railhead
