#include "deviceplugin/services/kubelet/handlers.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "cni/state/allocation.h"
#include "cni/state/cdi_spec.h"
#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/state_folder.h"
#include "netns/base/unique_fd.h"

namespace railhead::kubelet {
namespace {

constexpr const char* kOnlyKubelet = "only kubelet asks for this; see its log";

template <typename Ids>
std::vector<std::string> ToVector(const Ids& ids) {
  return {ids.begin(), ids.end()};
}

// Does not cut within a UTF-8 character.
std::string Cut(std::string text, std::size_t limit) {
  constexpr std::string_view kMore = "...";
  if (text.size() <= limit) return text;
  std::size_t end = limit - kMore.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.erase(end).append(kMore);
}

Error Cut(Error error) {
  // The hint follows the names, and must not be lost to them.
  constexpr std::size_t kBetween = 2;  // "; "
  error.hint = Cut(std::move(error.hint), kLongestMessage / 2);
  error.message = Cut(std::move(error.message), kLongestMessage / 2 - kBetween);
  return error;
}

tl::unexpected<Error> Refuse(const std::string& why) {
  return Fail(ErrorCode::kInvalid, why, kOnlyKubelet);
}

// A full list would fill the log.
std::vector<std::string> ForReport(std::vector<std::string> ids) {
  constexpr std::size_t kMostReported = 64;
  constexpr std::size_t kLongestId = 64;
  if (ids.size() > kMostReported) {
    ids.resize(kMostReported);
    ids.emplace_back("...");
  }
  for (std::string& id : ids) id = Cut(std::move(id), kLongestId);
  return ids;
}

Result<void> CheckAllocate(const resources::ResourcePool& pool, const v1beta1::AllocateRequest& request) {
  const std::string attempt = "allocating devices of " + pool.spec.resource + ": ";
  if (request.container_requests().empty()) return Refuse(attempt + "the request names no container");
  std::set<std::string_view> seen;
  for (const auto& container : request.container_requests()) {
    if (container.device_ids().empty()) return Refuse(attempt + "no device ids given");
    for (const std::string& id : container.device_ids()) {
      if (!seen.insert(id).second)
        return Refuse(std::string(attempt).append("'").append(id).append("' is given twice"));
      if (pool.Find(id) != nullptr) continue;
      return Fail(ErrorCode::kInvalid,
                  std::string(attempt).append("'").append(id).append("' is not a device of this resource"),
                  "compare with railheadd --list");
    }
  }
  return {};
}

Result<void> CheckPreferred(const std::string& resource,
                            const v1beta1::ContainerPreferredAllocationRequest& container) {
  const std::string attempt = "preferring devices of " + resource + ": ";
  const std::set<std::string_view> available(container.available_device_ids().begin(),
                                             container.available_device_ids().end());
  const std::set<std::string_view> required(container.must_include_device_ids().begin(),
                                            container.must_include_device_ids().end());
  for (const std::string_view id : required) {
    if (!available.contains(id)) {
      return Refuse(
          std::string(attempt).append("'").append(id).append("' must be included and is not available"));
    }
  }
  const std::string size = std::to_string(container.allocation_size());
  if (container.allocation_size() < 0) return Refuse(attempt + "the size is " + size);
  const auto wanted = static_cast<std::size_t>(container.allocation_size());
  if (wanted > available.size()) {
    return Refuse(attempt + size + " are asked for, and " + std::to_string(available.size()) +
                  " are available");
  }
  if (required.size() > wanted) {
    return Refuse(attempt + std::to_string(required.size()) + " must be included in " + size);
  }
  return {};
}

Result<void> CheckCount(const std::string& attempt, std::size_t count) {
  if (count <= kMostDevicesAsked) return {};
  return Refuse(attempt + ": " + std::to_string(count) + " device ids, more than the " +
                std::to_string(kMostDevicesAsked) + " that a node can have");
}

std::size_t IdsIn(const v1beta1::PreferredAllocationRequest& request) {
  std::size_t count = 0;
  for (const auto& container : request.container_requests()) {
    count += static_cast<std::size_t>(container.available_device_ids_size());
    count += static_cast<std::size_t>(container.must_include_device_ids_size());
  }
  return count;
}

Result<void> PrepareStart(const Root& root, const resources::ResourcePool& pool,
                          const v1beta1::PreStartContainerRequest& request,
                          std::chrono::milliseconds reader_limit, ContainerCall* call) {
  const auto ids = ToVector(request.device_ids());
  RH_TRY(CheckCount("PreStartContainer of " + pool.spec.resource, ids.size()));
  RH_TRY(CheckAttached(root, pool, ids));
  call->rewritten = ForReport(RH_TRY(RepairCdiSpecs(root, ids)));
  if (HasCdiNames(pool)) call->cdi_unread = !RH_TRY(AwaitCdiReader(root, ids, reader_limit));
  return {};
}

void Fill(const resources::AllocateAnswer& answer, v1beta1::ContainerAllocateResponse* response) {
  for (const auto& [name, value] : answer.envs) (*response->mutable_envs())[name] = value;
  for (const auto& mount : answer.mounts) {
    v1beta1::Mount* target = response->add_mounts();
    target->set_container_path(mount.container_path);
    target->set_host_path(mount.host_path);
    target->set_read_only(true);
  }
  const auto add_node = [&](const std::string& host_path, const std::string& container_path) {
    v1beta1::DeviceSpec* device = response->add_devices();
    device->set_container_path(container_path);
    device->set_host_path(host_path);
    device->set_permissions("rw");
  };
  for (const std::string& path : answer.device_nodes) add_node(path, path);
  for (const resources::DeviceNode& node : answer.renamed_nodes)
    add_node(node.host_path, node.container_path);
  for (const std::string& name : answer.cdi_devices) response->add_cdi_devices()->set_name(name);
}

}  // namespace

Result<void> AnswerAllocate(const resources::ResourcePool& pool, resources::Allocator* allocator,
                            const v1beta1::AllocateRequest& request, const ContainerReport& report,
                            v1beta1::AllocateResponse* response) {
  if (auto checked = CheckAllocate(pool, request); !checked) {
    Error error = Cut(std::move(checked.error()));
    const bool some = !request.container_requests().empty();
    report(
        {ForReport(some ? ToVector(request.container_requests(0).device_ids()) : std::vector<std::string>{}),
         error,
         {}});
    return tl::unexpected(std::move(error));
  }
  for (const auto& container : request.container_requests()) {
    auto ids = ToVector(container.device_ids());
    auto answer = allocator->Allocate(pool, ids);
    if (!answer) {
      Error error = Cut(std::move(answer.error()));
      report({std::move(ids), error, {}});
      return tl::unexpected(std::move(error));
    }
    report({std::move(ids), std::nullopt, {}});
    Fill(*answer, response->add_container_responses());
  }
  return {};
}

Result<void> AnswerPreferred(const resources::ResourcePool& pool, const resources::PreferHints& hints,
                             const v1beta1::PreferredAllocationRequest& request,
                             v1beta1::PreferredAllocationResponse* response) {
  RH_TRY(CheckCount("preferring devices of " + pool.spec.resource, IdsIn(request)));
  for (const auto& container : request.container_requests()) {
    if (auto checked = CheckPreferred(pool.spec.resource, container); !checked)
      return tl::unexpected(Cut(std::move(checked.error())));
    const auto ids =
        Prefer(pool, ToVector(container.available_device_ids()),
               ToVector(container.must_include_device_ids()), container.allocation_size(), hints);
    auto* answer = response->add_container_responses();
    for (const std::string& id : ids) answer->add_device_ids(id);
  }
  return {};
}

bool HasCdiNames(const resources::ResourcePool& pool) {
  return pool.spec.late || pool.spec.device_nodes == DeviceNodeMode::kCdi;
}

Result<void> AnswerPreStart(const Root& root, const resources::ResourcePool& pool,
                            const v1beta1::PreStartContainerRequest& request, const ContainerReport& report,
                            std::chrono::milliseconds reader_limit) {
  ContainerCall call;
  call.device_ids = ForReport(ToVector(request.device_ids()));
  auto passed = PrepareStart(root, pool, request, reader_limit, &call);
  if (!passed) call.error = Cut(std::move(passed.error()));
  report(call);
  if (call.error) return tl::unexpected(*std::move(call.error));
  return {};
}

namespace {

tl::unexpected<Error> NotAttached(const resources::ResourcePool& pool, const std::string& id,
                                  std::size_t count, const std::string& why) {
  const std::string networks = count == 1 ? "one network" : std::to_string(count) + " networks";
  return Fail(ErrorCode::kConflict, "device " + id + " of " + pool.spec.resource + " " + why,
              "the pod was given " + std::to_string(count) + " of " + pool.spec.resource +
                  ", so its annotation " + "k8s.v1.cni.cncf.io/networks must name " + networks +
                  " of type railhead that are annotated " + "k8s.v1.cni.cncf.io/resourceName: " +
                  pool.spec.resource + " (or the cluster network must be chained with railhead)" +
                  (pool.spec.late ? "; a pod with hostNetwork gets no device of a pool with late binding, "
                                    "since no CNI plugin runs for it"
                                  : ""));
}

// All devices of the container requests that `ids` belong to.
Result<std::set<std::string>> WithSiblings(const Root& root, const resources::ResourcePool& pool,
                                           const std::vector<std::string>& ids) {
  std::set<std::string> all(ids.begin(), ids.end());
  for (const std::string& id : ids) {
    const auto record = RH_TRY_WRAP(ReadAllocation(root, id), "reading the allocation record of " + id);
    // A record of another resource means that the device has changed its pool since. Its siblings of that
    // time do not count now.
    if (record && record->resource == pool.spec.resource) {
      all.insert(record->siblings.begin(), record->siblings.end());
    }
  }
  return all;
}

}  // namespace

Result<void> CheckAttached(const Root& root, const resources::ResourcePool& pool,
                           const std::vector<std::string>& ids) {
  if (pool.spec.nccl_config != NcclConfigPolicy::kRequired) return {};
  if (ids.empty()) return Fail(ErrorCode::kInvalid, "PreStartContainer without device ids");
  const auto devices = RH_TRY(WithSiblings(root, pool, ids));
  const Journal journal(root);
  std::string sandbox;
  std::string sandbox_of;
  for (const std::string& id : devices) {
    const auto entry = RH_TRY_WRAP(journal.FindByDevice(id), "looking for the attachment of " + id);
    if (!entry) return NotAttached(pool, id, devices.size(), "is attached to no pod");
    if (entry->phase != Phase::kDone) {
      return NotAttached(pool, id, devices.size(),
                         "has an attachment that is not finished (sandbox " + entry->key.container_id + ")");
    }
    if (sandbox.empty()) {
      sandbox = entry->key.container_id;
      sandbox_of = id;
    } else if (entry->key.container_id != sandbox) {
      std::string why = "is attached to sandbox ";
      why.append(entry->key.container_id).append(", but ").append(sandbox_of);
      why.append(" of the same container to ").append(sandbox);
      return NotAttached(pool, id, devices.size(), why);
    }
  }
  return {};
}

Result<std::vector<std::string>> RepairCdiSpecs(const Root& root, const std::vector<std::string>& ids) {
  std::vector<std::string> repaired;
  for (const std::string& id : ids) {
    const std::string path = paths::CdiSpec(root, id);
    const std::string name = path.substr(path.rfind('/') + 1);
    if (DeviceOfCdiSpec(name) != id || RH_TRY(IsCdiSpecIntact(root, name))) continue;
    const auto lock = FileLock::Acquire(paths::Lock(root, id), std::chrono::milliseconds(0));
    if (!lock && lock.error().code == ErrorCode::kTimeout) continue;
    if (!lock) return Fail(lock.error());
    if (RH_TRY_WRAP(RepairCdiSpec(root, name), "writing " + path + " again")) repaired.push_back(id);
  }
  return repaired;
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// The events of one file of a directory from now on.
class FileEvents {
 public:
  static Result<FileEvents> Watch(const std::string& directory, std::string name) {
    UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify.valid()) return FailSys(errno, "making an inotify descriptor");
    if (::inotify_add_watch(inotify.get(), directory.c_str(), IN_OPEN | IN_MOVED_TO | IN_ONLYDIR) < 0)
      return FailSys(errno, "watching " + directory);
    return FileEvents(std::move(inotify), std::move(name));
  }

  // Whether the file was opened after it was put in place.
  Result<bool> AwaitOpened(Clock::time_point deadline) {
    while (!opened_) {
      const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
      pollfd ready{inotify_.get(), POLLIN, 0};
      const int count = ::poll(&ready, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
      if (count < 0 && errno != EINTR) return FailSys(errno, "waiting for a reader of " + name_);
      if (count == 0) return false;
      Read();
    }
    return true;
  }

 private:
  FileEvents(UniqueFd inotify, std::string name) : inotify_(std::move(inotify)), name_(std::move(name)) {}

  void Read() {
    alignas(inotify_event) std::array<char, 4096> buffer;
    for (ssize_t size = 0; (size = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0;) {
      for (const char* at = buffer.data(); at < buffer.data() + size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(at);
        at += sizeof(inotify_event) + event->len;
        // Padded with zeros.
        if (event->len == 0 || name_ != std::string_view(event->name)) continue;
        if ((event->mask & IN_MOVED_TO) != 0) placed_ = true;
        if ((event->mask & IN_OPEN) != 0 && placed_) opened_ = true;
      }
    }
  }

  UniqueFd inotify_;
  std::string name_;
  bool placed_ = false;
  bool opened_ = false;
};

// false: an ADD or DEL is at work on the device, or it has no spec.
Result<bool> Publish(const Root& root, const std::string& id, const std::string& name) {
  const auto lock = FileLock::Acquire(paths::Lock(root, id), milliseconds(0));
  if (!lock && lock.error().code == ErrorCode::kTimeout) return false;
  if (!lock) return Fail(lock.error());
  return PublishCdiSpec(root, name);
}

}  // namespace

Result<bool> AwaitCdiReader(const Root& root, const std::vector<std::string>& ids, milliseconds limit) {
  for (const std::string& id : ids) {
    const std::string path = paths::CdiSpec(root, id);
    const std::string name = path.substr(path.rfind('/') + 1);
    if (DeviceOfCdiSpec(name) != id) continue;
    auto events = FileEvents::Watch(paths::CdiDirectory(root), name);
    if (!events && events.error().code == ErrorCode::kNotFound) return true;  // no directory, no specs
    if (RH_TRY_WRAP(Publish(root, id, name), "writing " + path + " again")) {
      // Without inotify nobody knows, as after the limit: most runtimes have read it by then.
      if (!events) return false;
      return events->AwaitOpened(Clock::now() + limit);
    }
  }
  return true;
}

}  // namespace railhead::kubelet
