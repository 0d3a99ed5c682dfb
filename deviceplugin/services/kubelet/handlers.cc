#include "deviceplugin/services/kubelet/handlers.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "deviceplugin/node/resources/grant.h"
#include "deviceplugin/services/kubelet/cdi_reader.h"
#include "deviceplugin/services/kubelet/cdi_repair.h"
#include "deviceplugin/services/kubelet/check_attached.h"

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

}  // namespace railhead::kubelet
