// Steps that kubelet builds from CRI calls: waiting for the runtime, a container from its start to its end, a
// pod's removal.
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

// Waits until the runtime answers, its network is ready and it knows all `images`. Pods on the node's network
// need no other. An error that time cannot fix ends the wait.
Result<void> WaitReady(CriClient* client, const std::vector<std::string>& images,
                       std::chrono::milliseconds limit, bool host_network = false);

// Creates the container, starts it, waits for its end, reads its log, and removes both. Runtimes do not
// remove logs, and append to existing ones. After an error it also removes both.
Result<Finished> RunContainer(CriClient* client, const std::string& sandbox, const PodSpec& pod,
                              const ContainerSpec& container, std::chrono::milliseconds limit);

// Creates and starts a container. Returns its id. After an error it removes the container.
Result<std::string> StartContainer(CriClient* client, const std::string& sandbox, const PodSpec& pod,
                                   const ContainerSpec& container);

// What the container has written so far.
Result<ContainerOutput> ReadOutput(CriClient* client, const std::string& container);

// Stops the sandbox, which calls CNI DEL, and removes it with its containers. Succeeds if it has already
// gone.
Result<void> RemovePod(CriClient* client, const std::string& sandbox);

}  // namespace railhead::testing
