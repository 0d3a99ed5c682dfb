// The answers to kubelet's calls, apart from gRPC: a function takes a request, and returns an answer or an
// error.
//
// The socket is root's, but requests are checked as if anybody could send them. A request may name a device
// only once, and no more devices than a node can have. Nothing is written before the whole request is valid.
// kubelet itself asks for one container at a time.
// Threads: thread-safe, as far as the allocator is.
// Errors: kInvalid for senseless requests, and those of Allocator::Allocate and CheckAttached. Messages have
// at most kLongestMessage bytes, however long the names in them are: gRPC puts them into a header. Internal
// to kubelet/, for the messages of its proto.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/node/resources/allocate.h"
#include "deviceplugin/node/resources/preferred.h"
#include "deviceplugin/node/resources/resource_pool.h"
#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.pb.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::kubelet {

inline constexpr std::size_t kMostDevicesAsked = 4096;
inline constexpr std::size_t kLongestMessage =
    2048;  // with its hint; thrice that where it is percent-encoded

// How long PreStartContainer waits for the container runtime to read CDI specs. A loaded machine needs tenths
// of a second.
inline constexpr std::chrono::milliseconds kCdiReaderLimit{3'000};

// For each container: the requested devices, the error if any, and the devices whose CDI specs were repaired.
struct ContainerCall {
  std::vector<std::string> device_ids;
  std::optional<Error> error;
  std::vector<std::string> rewritten;
  bool cdi_unread = false;  // no container runtime read the specs in time
};
using ContainerReport = std::function<void(ContainerCall call)>;

Result<void> AnswerAllocate(const resources::ResourcePool& pool, resources::Allocator* allocator,
                            const v1beta1::AllocateRequest& request, const ContainerReport& report,
                            v1beta1::AllocateResponse* response);

// An id that is not in the pool is not an error: kubelet may not know yet that the device is gone.
Result<void> AnswerPreferred(const resources::ResourcePool& pool, const resources::PreferHints& hints,
                             const v1beta1::PreferredAllocationRequest& request,
                             v1beta1::PreferredAllocationResponse* response);

// Whether Allocate gives the pool's containers CDI names whose specs ADD writes.
bool HasCdiNames(const resources::ResourcePool& pool);

// Answers when the container runtime knows the CDI specs of the devices, at the latest after `reader_limit`.
Result<void> AnswerPreStart(const Root& root, const resources::ResourcePool& pool,
                            const v1beta1::PreStartContainerRequest& request, const ContainerReport& report,
                            std::chrono::milliseconds reader_limit = kCdiReaderLimit);

}  // namespace railhead::kubelet
