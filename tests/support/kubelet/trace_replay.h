// TraceReplay: plays kubelet's part of a trace to railheadd, and compares railheadd's answers.
//
// The stand-in makes kubelet's reactions itself: dialling back, opening ListAndWatch, dropping a client. The
// calls during admission come from the trace, with only the devices replaced. Devices are compared by their
// rank in a resource's first list, errors by their code. The order of ends (StreamEnd) is not compared, since
// it follows from the calls.
// Threads: one. Errors: kConflict for an answer that differs, kTimeout for one that does not come; both name
// the event.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "netns/base/result.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/kubelet/trace.h"

namespace railhead::testing {

class TraceReplay {
 public:
  // Starts and stops things on the node.
  struct Host {
    std::function<void(int plugin)> start;
    std::function<void(int plugin)> stop;
    std::function<void(int plugin)> kill;
    // Gives the resource these devices from now on.
    std::function<void(const std::string& resource, const std::set<std::string>& ids)> set_devices;
  };

  TraceReplay(std::string directory, Host host, std::chrono::seconds patience);
  ~TraceReplay();
  TraceReplay(const TraceReplay&) = delete;
  TraceReplay& operator=(const TraceReplay&) = delete;

  Result<void> Play(const Trace& trace);

 private:
  struct Heard;  // what came from the stand-in's threads

  Result<void> PlayEvent(const TraceEvent& event);
  void PlayNode(const TraceEvent& event);
  Result<void> Expect(const TraceEvent& event);
  Result<void> Compare(const TraceEvent& expected, const TraceEvent& seen);
  void LearnDevices(const TraceEvent& expected, const TraceEvent& seen);
  void ChangeDevices(const TraceEvent& expected);

  const Host host_;
  const std::chrono::seconds patience_;
  std::unique_ptr<Heard> heard_;
  DeviceManager kubelet_;
  // By resource: the trace's device, and ours of the same rank.
  std::map<std::string, std::map<std::string, std::string>> ours_;
  std::map<std::string, std::set<std::string>> listed_;  // of the trace's newest lists
};

}  // namespace railhead::testing
