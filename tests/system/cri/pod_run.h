// What kubelet makes of the CRI's calls: waiting for the runtime, a container from its
// start to its end, a pod's removal.
//
// Threads: functions without state; each blocks until done or `limit` is over.
// Errors: those of CriClient; kTimeout names what was waited for.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/system/cri/container_log.h"
#include "tests/system/cri/cri_client.h"

namespace railhead::testing {

struct Finished {
  int exit_code = 0;
  std::string reason;
  ContainerOutput output;
};

// Until the runtime answers, its network is there and it knows all of `images`. An
// answer that time will not mend ends the waiting.
Result<void> WaitReady(CriClient* client, const std::vector<std::string>& images,
                       std::chrono::milliseconds limit);

// Creates the container, starts it, waits for its end, reads its log, removes both:
// runtimes leave logs to kubelet and append to what they find. After an error they are
// removed as well.
Result<Finished> RunContainer(CriClient* client, const std::string& sandbox, const PodSpec& pod,
                              const ContainerSpec& container, std::chrono::milliseconds limit);

// Creates and starts it; the id. After an error it is removed.
Result<std::string> StartContainer(CriClient* client, const std::string& sandbox, const PodSpec& pod,
                                   const ContainerSpec& container);

// What the container has written so far.
Result<ContainerOutput> ReadOutput(CriClient* client, const std::string& container);

// Stops the sandbox, which calls CNI DEL, and removes it with its containers. Succeeds
// when it is gone already.
Result<void> RemovePod(CriClient* client, const std::string& sandbox);

}  // namespace railhead::testing
