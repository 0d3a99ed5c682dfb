// What kubelet's calls are answered with, apart from gRPC: a request goes in, an answer or an
// error comes out.
//
// The socket is root's, but what comes in is checked as if it were anybody's: a request names
// its devices at most once, no more than a node can have, and nothing is written before all
// of it was found good. kubelet itself asks for one container at a time.
// Threads: thread-safe, as far as the allocator is.
// Errors: kInvalid for requests that make no sense, and those of Allocator::Allocate and
// CheckAttached. Messages have at most kLongestMessage bytes, however long the names in them
// are: gRPC puts them into a header.
// Internal to kubelet/, for the messages of its proto.
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
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::kubelet {

inline constexpr std::size_t kMostDevicesAsked = 4096;
inline constexpr std::size_t kLongestMessage =
    2048;  // with its hint; thrice that where it is percent-encoded

// How long PreStartContainer waits for the container runtime to read CDI specs. A loaded machine needs tenths
// of a second.
inline constexpr std::chrono::milliseconds kCdiReaderLimit{3'000};

// Of each container: its devices as asked for, what was wrong, and whose CDI specs were written again.
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

// Ids that are not of the pool are no error: kubelet may not have heard yet that they are gone.
Result<void> AnswerPreferred(const resources::ResourcePool& pool, const resources::PreferHints& hints,
                             const v1beta1::PreferredAllocationRequest& request,
                             v1beta1::PreferredAllocationResponse* response);

// Whether Allocate gives the pool's containers CDI names whose specs ADD writes.
bool HasCdiNames(const resources::ResourcePool& pool);

// Answers when the container runtime knows the CDI specs of the devices, at the latest after `reader_limit`.
Result<void> AnswerPreStart(const Root& root, const resources::ResourcePool& pool,
                            const v1beta1::PreStartContainerRequest& request, const ContainerReport& report,
                            std::chrono::milliseconds reader_limit = kCdiReaderLimit);

// The gate before a container starts.
//
// kubelet calls PreStartContainer after the sandbox and its networks are up. A pod
// that asks for N devices but names fewer networks would start without its NICs, or
// with an NCCL configuration that lacks some, and NCCL would quietly use TCP. So in pools that
// require an NCCL configuration the container starts only when all devices of its request are in
// one and the same sandbox.
// The container runtime reads the devices' CDI specs next. One that somebody has removed or changed is
// written again here, or no container of the pod would ever start. Threads: pure functions over the file
// system.

// `ids`: what kubelet names, the devices of one container. Passes for pools without
// a required NCCL configuration. Errors: kConflict with the missing id, kInvalid for ids that
// are no devices of the pool.
Result<void> CheckAttached(const Root& root, const resources::ResourcePool& pool,
                           const std::vector<std::string>& ids);

// Writes missing and different CDI specs of the devices again; the ids of those. A device on which an ADD or
// DEL is at work is left alone.
Result<std::vector<std::string>> RepairCdiSpecs(const Root& root, const std::vector<std::string>& ids);

// Waits until the container runtime knows a device's CDI spec.
//
// A runtime keeps all specs in memory and reads them again when inotify tells it of a change in /run/cdi.
// CreateContainer does not read them: it fails for a spec that is newer than the runtime's last reading
// (cncf-tags/container-device-interface, pkg/cdi/cache.go, versions 0.7.2 to 1.1.0). So PreStartContainer
// renames the spec over itself, which makes an event, and waits until somebody opens it. The runtime does so
// under the lock of its memory, and keeps that lock until it has read all specs. Threads: thread-safe.

// Of the first of `ids` that has a spec and that no ADD or DEL is at work on: one reading covers all specs
// that were there before it. false: nobody opened it within `limit`.
Result<bool> AwaitCdiReader(const Root& root, const std::vector<std::string>& ids,
                            std::chrono::milliseconds limit);

}  // namespace railhead::kubelet
