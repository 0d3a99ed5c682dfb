#include "deviceplugin/node/topology/accelerator_ids.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/mutex.h"
#include "netns/base/root.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::topology {
namespace {

constexpr const char* kNvidiaGpus = "/proc/driver/nvidia/gpus";
constexpr std::size_t kUuidSize = 36;  // 8-4-4-4-12

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// A value of the driver's information file: "GPU UUID: \t GPU-...".
std::string ValueOf(std::string_view text, std::string_view key) {
  for (const std::string& line : Split(text, '\n')) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    const auto start = line.find_first_not_of(" \t", key.size() + 1);
    return start == std::string::npos ? std::string()
                                      : line.substr(start, line.find_last_not_of(" \t\r") + 1 - start);
  }
  return {};
}

struct NvidiaGpu {
  PciAddress address;
  std::string uuid;   // lower case
  std::string minor;  // of /dev/nvidiaN
};

std::vector<NvidiaGpu> ReadNvidiaGpus(const Root& root) {
  std::vector<NvidiaGpu> gpus;
  const auto names = ListDirectory(root.Path(kNvidiaGpus));
  if (!names || !*names) return gpus;
  for (const std::string& name : **names) {
    const auto address = PciAddress::Parse(name);
    const auto text = ReadFile(root.Path(kNvidiaGpus) + "/" + name + "/information");
    if (!address || !text || !*text) continue;
    gpus.push_back({*address, ToLower(ValueOf(**text, "GPU UUID")), ValueOf(**text, "Device Minor")});
  }
  return gpus;
}

// "GPU-" or "MIG-" and the UUID of an id, without a replica's number; nullopt if the id has another form.
std::optional<std::string> UuidIn(std::string_view id, std::string_view prefix) {
  if (!id.starts_with(prefix) || id.size() < prefix.size() + kUuidSize) return std::nullopt;
  const std::string_view rest = id.substr(prefix.size() + kUuidSize);
  const bool replica = rest.starts_with("-") && IsNumber(rest.substr(1));
  if (!rest.empty() && !replica) return std::nullopt;
  return std::string(id.substr(0, prefix.size() + kUuidSize));
}

// NVIDIA's plugin numbers the replicas of a shared GPU: "GPU-...::3".
std::string_view WithoutReplica(std::string_view id) {
  const auto replica = id.rfind("::");
  return replica != std::string_view::npos && IsNumber(id.substr(replica + 2)) ? id.substr(0, replica) : id;
}

}  // namespace

AcceleratorIds::AcceleratorIds(Root root, const std::vector<Accelerator>& accelerators,
                               std::map<std::string, PciAddress> table, UuidLookup beyond_proc)
    : root_(std::move(root)), table_(std::move(table)), beyond_proc_(std::move(beyond_proc)) {
  accelerators_.reserve(accelerators.size());
  for (const Accelerator& accelerator : accelerators) accelerators_.push_back(accelerator.address);
  std::ranges::sort(accelerators_);
}

std::optional<PciAddress> AcceleratorIds::Find(std::string_view id, std::string_view resource,
                                               Effort effort) const {
  if (auto found = FindPlain(std::string(id), resource, effort); found) return found;
  const std::string_view shared = WithoutReplica(id);
  return shared == id ? std::nullopt : FindPlain(std::string(shared), resource, effort);
}

std::vector<PciAddress> AcceleratorIds::FindAll(const std::vector<std::string>& ids,
                                                std::string_view resource, Effort effort) const {
  std::vector<PciAddress> all;
  std::set<std::string> shared;  // of which a replica was asked for
  for (const std::string& id : ids) {
    const std::string_view plain = WithoutReplica(id);
    auto uuid = UuidIn(plain, "GPU-");
    if (!uuid) uuid = UuidIn(plain, "MIG-");
    const bool is_replica = uuid || plain != id;
    if (is_replica && !table_.contains(id) && !shared.insert(uuid.value_or(std::string(plain))).second)
      continue;
    if (const auto found = Find(id, resource, effort); found && !Contains(all, *found)) all.push_back(*found);
  }
  return all;
}

std::optional<PciAddress> AcceleratorIds::FindPlain(const std::string& id, std::string_view resource,
                                                    Effort effort) const {
  if (const auto entry = table_.find(id); entry != table_.end()) return AcceleratorAt(entry->second);
  if (const auto address = PciAddress::Parse(id); address) return AcceleratorAt(*address);
  if (const auto uuid = UuidIn(id, "GPU-"); uuid) return FindUuid(*uuid, effort);
  if (id.starts_with("MIG-GPU-")) return FindUuid(id.substr(4, id.find('/') - 4), effort);
  if (const auto uuid = UuidIn(id, "MIG-"); uuid) return FindUuid(*uuid, effort);
  if (id.starts_with("nvidia")) return FindMinor(id.substr(6, id.find('/') - 6));
  if (id.starts_with("gpu-")) return FindMinor(id.substr(4));
  if (id.starts_with("card")) return FindCard(id);
  if (!IsNumber(id) || !NamesAccelerators(resource)) return std::nullopt;
  const auto index = ParseInt(id);
  if (!index || static_cast<std::uint64_t>(*index) >= accelerators_.size()) return std::nullopt;
  return accelerators_[static_cast<std::size_t>(*index)];
}

std::optional<PciAddress> AcceleratorIds::FindUuid(const std::string& uuid, Effort effort) const {
  const std::string wanted = ToLower(uuid);
  for (const NvidiaGpu& gpu : ReadNvidiaGpus(root_)) {
    if (gpu.uuid == wanted) return AcceleratorAt(gpu.address);
  }
  if (!beyond_proc_ || effort == Effort::kFiles) return std::nullopt;
  const auto address = beyond_proc_(uuid);
  return address ? AcceleratorAt(*address) : std::nullopt;
}

std::optional<PciAddress> AcceleratorIds::FindMinor(const std::string& minor) const {
  if (!IsNumber(minor)) return std::nullopt;
  for (const NvidiaGpu& gpu : ReadNvidiaGpus(root_)) {
    if (gpu.minor == minor) return AcceleratorAt(gpu.address);
  }
  return std::nullopt;
}

std::optional<PciAddress> AcceleratorIds::FindCard(const std::string& id) const {
  const std::string card = id.substr(0, id.find('-'));
  if (!IsNumber(card.substr(4))) return std::nullopt;
  const auto target = ReadLink(root_.Path("/sys/class/drm/" + card + "/device"));
  if (!target || !*target) return std::nullopt;
  const auto address = PciAddress::Parse((*target)->substr((*target)->rfind('/') + 1));
  return address ? AcceleratorAt(*address) : std::nullopt;
}

std::string AcceleratorIds::UuidOf(const PciAddress& accelerator) const {
  const auto text = ReadFile(root_.Path(kNvidiaGpus) + "/" + accelerator.ToString() + "/information");
  std::string uuid = text && *text ? ValueOf(**text, "GPU UUID") : std::string();
  // All question marks until the driver has looked at the GPU.
  return uuid.find('?') == std::string::npos ? uuid : std::string();
}

std::optional<PciAddress> AcceleratorIds::AcceleratorAt(const PciAddress& address) const {
  const auto is_one = [this](const PciAddress& one) {
    return std::binary_search(accelerators_.begin(), accelerators_.end(), one);
  };
  if (is_one(address)) return address;
  const auto device = FindPciDevice(root_, address);
  if (!device || !*device || !(*device)->physfn || !is_one(*(*device)->physfn)) return std::nullopt;
  return (*device)->physfn;
}

AcceleratorIds::UuidLookup Remembering(AcceleratorIds::UuidLookup lookup) {
  struct Memory {
    Mutex mutex;
    std::map<std::string, PciAddress> found;
  };
  return [lookup = std::move(lookup), memory = std::make_shared<Memory>()](const std::string& uuid) {
    const MutexLock lock(memory->mutex);
    const auto known = memory->found.find(uuid);
    if (known != memory->found.end()) return std::optional(known->second);
    const auto address = lookup(uuid);
    if (address) memory->found.emplace(uuid, *address);
    return address;
  };
}

bool NamesAccelerators(std::string_view resource) {
  constexpr std::array<std::string_view, 11> kWords{
      {"gpu", "vgpu", "npu", "tpu", "dcu", "mlu", "mig-", "gaudi", "ascend", "neuron", "accelerator"}};
  const std::string name = ToLower(resource);
  const auto starts_one = [&](std::size_t at) {
    if (at > 0 && name[at - 1] >= 'a' && name[at - 1] <= 'z') return false;
    return std::ranges::any_of(
        kWords, [&](std::string_view word) { return name.compare(at, word.size(), word) == 0; });
  };
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (starts_one(at)) return true;
  }
  return false;
}

}  // namespace railhead::topology
