// StartReport: the step at which the start of a pod hangs, since when, the attempts, the next step, and what
// to do.
//
// Derived from a PodTrace alone. States follow the order of a start: kubelet allocates devices, the runtime
// calls ADD for each network, the containers start, and DEL restores the devices.
// Threads: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/tools/pod_start/pod_trace.h"
#include "netns/json/record.h"

namespace railhead::pod_start {

enum class StartState : std::uint8_t {
  kUnknown,      // nothing on this node names the pod
  kUnallocated,  // kubelet has the pod and has allocated it no device of Railhead
  kAllocated,    // kubelet has allocated devices, and not every device has had its ADD
  kAttaching,    // an ADD runs
  kFailing,      // the latest ADD failed
  kInterrupted,  // an ADD was killed, or its journal entry cannot be read
  kAttached,     // all devices are attached
  kEnding,       // a DEL runs or is due
};

// A device of the pod, and how far its start has come.
struct DeviceStep {
  std::string device;
  std::string resource;
  std::string container;  // of the pod
  std::string step;       // "allocated", "attaching", "attached", "in reset", "in pod train/worker-1"
  std::string unhealthy;  // why; "": it is Healthy, or its health is not known

  static void List(auto& f) {
    f("device", &DeviceStep::device, {.column = "DEVICE"});
    f("resource", &DeviceStep::resource, {.column = "RESOURCE"});
    f("container", &DeviceStep::container, {.column = "CONTAINER", .wide = kWide});
    f("state", &DeviceStep::step, {.column = "STATE"});
    f("unhealthy", &DeviceStep::unhealthy, {.need = Need::kSparse, .column = "UNHEALTHY"});
  }
};

// The latest failed ADD.
struct LatestFailure {
  StartTime time;
  int code = 0;
  std::string message;
  std::string hint;
  std::size_t times = 0;  // failed ADDs of the pod on record

  static void List(auto& f) {
    f("time", &LatestFailure::time);
    f("code", &LatestFailure::code);
    f("message", &LatestFailure::message);
    f("hint", &LatestFailure::hint, kSparseField);
    f("times", &LatestFailure::times);
  }
};

struct StartReport {
  std::string pod;
  std::string uid;
  StartState state = StartState::kUnknown;
  std::optional<StartTime> since;
  std::string what;                // one sentence
  std::vector<std::string> tried;  // failed ADDs by error
  std::string next;                // what happens without an operator
  std::vector<std::string> todo;
  std::optional<LatestFailure> failure;
  std::vector<DeviceStep> devices;
  std::vector<ResourceUse> resources;
  std::vector<std::string> notes;

  static void List(auto& f) {
    f("pod", &StartReport::pod, kSparseField);
    f("uid", &StartReport::uid, kSparseField);
    f("state", &StartReport::state);
    f("since", &StartReport::since);
    f("what", &StartReport::what);
    f("tried", &StartReport::tried);
    f("next", &StartReport::next);
    f("todo", &StartReport::todo);
    f("failure", &StartReport::failure);
    f("devices", &StartReport::devices);
    f("resources", &StartReport::resources);
    f("notes", &StartReport::notes);
  }
};

StartReport ExplainStart(const PodTrace& trace);

}  // namespace railhead::pod_start

template <>
struct railhead::Names<railhead::pod_start::StartState> {
  using enum pod_start::StartState;
  static constexpr std::array kAll = {
      std::pair{"unknown", kUnknown},     std::pair{"not allocated", kUnallocated},
      std::pair{"allocated", kAllocated}, std::pair{"attaching", kAttaching},
      std::pair{"failing", kFailing},     std::pair{"interrupted", kInterrupted},
      std::pair{"attached", kAttached},   std::pair{"ending", kEnding}};
};
