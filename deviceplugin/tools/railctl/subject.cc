#include "deviceplugin/tools/railctl/subject.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "cni/protocol/cni_args.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::railctl {
namespace {

constexpr std::size_t kMostNearest = 3;
constexpr const char* kForms =
    "a rail, PF, VF, PCI address, RDMA device, network device, address, MAC, switch port, NAMESPACE/POD, pod "
    "UID, or container id or its beginning";

template <typename T>
void AddOnce(std::vector<T>* list, const T& value) {
  if (!Contains(*list, value)) list->push_back(value);
}

bool HasDevice(const JournalEntry& entry, const std::string& device) {
  return Contains(entry.devices, device, &AttachedDevice::device);
}

bool HasAddress(const AttachedDevice& device, const IpAddress& address) {
  return Contains(device.addressing.addresses, address, &IpPrefix::address);
}

// Every name of this node with what it names.
class NameIndex {
 public:
  NameIndex(const Root& root, const NodeRecords& records) : root_(root), records_(records) {
    AddRails();
    for (const inventory::NicFunction& function : records_.inventory->All()) AddFunction(function);
    AddSwitchPorts();
    AddAttachments();
    AddOthers();
  }

  // Those of exactly this name, each once.
  [[nodiscard]] std::vector<Subject> Named(const std::string& text) const {
    std::vector<Subject> found;
    for (const auto& [name, subject] : names_) {
      if (name == text) AddOnce(&found, subject);
    }
    return found;
  }
  [[nodiscard]] std::vector<Subject> ContainersThatBegin(const std::string& text) const {
    std::vector<Subject> found;
    for (const auto& [name, subject] : names_) {
      if (subject.kind == SubjectKind::kContainer && name == subject.name && name.starts_with(text))
        AddOnce(&found, subject);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> NearestTo(const std::string& text) const {
    std::set<std::string> all;
    for (const auto& [name, subject] : names_) all.insert(name);
    std::vector<std::string> names(all.begin(), all.end());
    std::vector<std::string> nearest;
    while (nearest.size() < kMostNearest) {
      const auto next = Nearest(text, names);
      if (!next) break;
      nearest.push_back(*next);
      std::erase(names, *next);
    }
    return nearest;
  }

 private:
  void Add(const std::string& name, const Subject& subject) {
    if (!name.empty()) names_.emplace_back(name, subject);
  }

  [[nodiscard]] Subject DeviceSubject(SubjectKind kind, const std::string& id) const {
    Subject subject{kind, id, {id}, {}, std::nullopt};
    for (const JournalEntry& entry : records_.journal.entries) {
      if (!IsReset(entry) && HasDevice(entry, id)) AddOnce(&subject.containers, entry.key.container_id);
    }
    for (const UnreadableEntry& entry : records_.journal.unreadable) {
      if (entry.devices.contains(id)) AddOnce(&subject.containers, entry.key.container_id);
    }
    return subject;
  }

  void AddRails() {
    if (!records_.fabric) return;
    for (const Rail& rail : records_.fabric->rails) {
      Subject subject{SubjectKind::kRail, rail.name, {}, {}, std::nullopt};
      const auto pf = records_.pf_of_rail.find(rail.name);
      if (pf != records_.pf_of_rail.end()) {
        for (const inventory::NicFunction& function : records_.inventory->functions) {
          if (function.pf.ToString() == pf->second) subject.devices.push_back(function.id);
        }
      }
      for (const JournalEntry& entry : records_.journal.entries) {
        if (Contains(entry.devices, rail.name, &AttachedDevice::rail))
          AddOnce(&subject.containers, entry.key.container_id);
      }
      Add(rail.name, subject);
    }
  }

  static SubjectKind KindOf(const inventory::NicFunction& function) {
    if (function.kind == inventory::FunctionKind::kAccelerator) return SubjectKind::kAccelerator;
    if (function.kind == inventory::FunctionKind::kAuxiliary) return SubjectKind::kSubfunction;
    return function.is_vf ? SubjectKind::kVf : SubjectKind::kPf;
  }

  void AddFunction(const inventory::NicFunction& function) {
    const Subject subject = DeviceSubject(KindOf(function), function.id);
    Add(function.id, subject);
    Add(function.rdma_device, subject);
    if (function.kind != inventory::FunctionKind::kNetwork) return;
    if (!function.is_vf) Add(function.pf_name, subject);
    for (const std::string& netdev :
         OwnNetdevsOf(root_, function.address).value_or(std::vector<std::string>())) {
      Add(netdev, subject);
      const auto mac = ReadAttribute(root_.Path("/sys/class/net/" + netdev + "/address"));
      if (mac && *mac) Add(**mac, subject);
    }
  }

  void AddSwitchPorts() {
    if (!records_.lldp) return;
    for (const lldp::RailNeighbor& rail : records_.lldp->rails) {
      if (!rail.neighbor || rail.device.empty()) continue;
      const LldpNeighbor& neighbor = rail.neighbor->neighbor;
      Add(neighbor.SwitchName() + "/" + neighbor.Port(), DeviceSubject(SubjectKind::kPf, rail.device));
    }
  }

  // The host does not see the names of a device in a pod: the journal has them.
  void AddAttachedDevice(const AttachedDevice& device) {
    const Subject subject =
        DeviceSubject(device.pf.empty() ? SubjectKind::kPf : SubjectKind::kVf, device.device);
    Add(device.device, subject);
    Add(device.slot, subject);
    Add(device.before.name, subject);
    Add(device.rdma.device, subject);
    for (const MacAddress& mac : {device.before.mac, MacOf(device.requested.vf)}) {
      if (!mac.IsZero()) Add(mac.ToString(), subject);
    }
  }

  // Of all attachments of its pod, or of the container alone.
  [[nodiscard]] Subject SandboxSubject(SubjectKind kind, const std::string& name, const auto& is_its) const {
    Subject subject{kind, name, {}, {}, std::nullopt};
    for (const auto* entries : {&records_.journal.entries, &records_.journal.earlier}) {
      for (const JournalEntry& entry : *entries) {
        if (!is_its(entry)) continue;
        AddOnce(&subject.containers, entry.key.container_id);
        // What an earlier boot's pod had, another one may have now.
        if (entries == &records_.journal.earlier) continue;
        for (const AttachedDevice& device : entry.devices) AddOnce(&subject.devices, device.device);
      }
    }
    return subject;
  }

  void AddContainer(const std::string& id) {
    Subject subject = SandboxSubject(SubjectKind::kContainer, id,
                                     [&](const JournalEntry& entry) { return entry.key.container_id == id; });
    if (subject.containers.empty()) subject.containers = {id};
    Add(id, subject);
  }

  void AddAttachments() {
    for (const auto* entries : {&records_.journal.entries, &records_.journal.earlier}) {
      for (const JournalEntry& entry : *entries) {
        if (IsReset(entry)) continue;
        AddContainer(entry.key.container_id);
        Add(entry.netns,
            SandboxSubject(SubjectKind::kContainer, entry.key.container_id,
                           [&](const auto& one) { return one.key.container_id == entry.key.container_id; }));
        const std::string pod = PodName(entry.cni_args);
        if (pod.empty()) continue;
        const Subject subject = SandboxSubject(
            SubjectKind::kPod, pod, [&](const JournalEntry& one) { return PodName(one.cni_args) == pod; });
        Add(pod, subject);
        Add(PodUid(entry.cni_args), subject);
      }
    }
    for (const JournalEntry& entry : records_.journal.entries) {
      for (const AttachedDevice& device : entry.devices) AddAttachedDevice(device);
    }
    for (const UnreadableEntry& entry : records_.journal.unreadable) AddContainer(entry.key.container_id);
  }

  // Pods that have no attachment yet, and containers of which only the address store knows.
  void AddOthers() {
    const auto pods = records_.PodsByUid();
    for (const ContainerDevices& allocation : records_.allocations) {
      if (pods.contains(allocation.pod_uid) || !Named(allocation.pod_uid).empty()) continue;
      Subject subject{SubjectKind::kPod, allocation.pod_uid, {}, {}, std::nullopt};
      for (const ContainerDevices& one : records_.allocations) {
        if (one.pod_uid == allocation.pod_uid)
          subject.devices.insert(subject.devices.end(), one.ids.begin(), one.ids.end());
      }
      Add(allocation.pod_uid, subject);
    }
    std::set<std::string> containers;
    for (const KnownAddress& known : records_.addresses.addresses)
      containers.insert(known.record.owner.container);
    for (const std::string& container : containers) {
      if (Named(container).empty()) AddContainer(container);
    }
  }

  const Root& root_;
  const NodeRecords& records_;
  std::vector<std::pair<std::string, Subject>> names_;
};

Subject AddressSubject(const NodeRecords& records, const IpAddress& address) {
  Subject subject{SubjectKind::kAddress, address.ToString(), {}, {}, address};
  for (const JournalEntry& entry : records.journal.entries) {
    for (const AttachedDevice& device : entry.devices) {
      if (!HasAddress(device, address)) continue;
      AddOnce(&subject.devices, device.device);
      AddOnce(&subject.containers, entry.key.container_id);
    }
  }
  for (const KnownAddress& known : records.addresses.addresses) {
    if (known.record.address == address && known.record.state == ipam::AddressState::kHeld)
      AddOnce(&subject.containers, known.record.owner.container);
  }
  return subject;
}

// As sysfs and the journal spell it.
std::string Spelt(const std::string& what) {
  if (const auto address = PciAddress::Parse(what)) return address->ToString();
  if (const auto address = PciAddress::Parse("0000:" + what)) return address->ToString();
  if (const auto mac = MacAddress::Parse(what)) return mac->ToString();
  return what;
}

// A rail and its PF are one device, also where both have the text as their name.
void KeepOnePerDevice(std::vector<Subject>* found) {
  std::ranges::sort(*found, {}, &Subject::kind);
  std::vector<Subject> kept;
  for (const Subject& subject : *found) {
    const bool known =
        !subject.devices.empty() && subject.IsDevice() && std::ranges::any_of(kept, [&](const Subject& one) {
          return one.IsDevice() && !one.devices.empty() && one.devices.front() == subject.devices.front();
        });
    if (!known) kept.push_back(subject);
  }
  *found = std::move(kept);
}

Error NotFound(const NameIndex& index, const NodeRecords& records, const std::string& what) {
  const auto nearest = index.NearestTo(what);
  std::string hint = nearest.empty() ? std::string("give ") + kForms + "; see railctl devices"
                                     : "did you mean " + Join(nearest, ", ") + "?";
  for (const Error& error : records.unread) hint += "; not searched: " + error.message;
  return {ErrorCode::kNotFound, "nothing on this node is called '" + what + "'", hint, 0};
}

Error Ambiguous(const std::vector<Subject>& found, const std::string& what) {
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const Subject& subject : found) names.push_back(subject.Title());
  return {ErrorCode::kInvalid,
          "'" + what + "' names " + std::to_string(found.size()) + " things: " + Join(names, ", "),
          "give a PCI address, or more of the container id", 0};
}

}  // namespace

std::string Subject::Title() const {
  return std::string(WordOf(kind)) + " " + name;
}

Result<Subject> FindSubject(const Root& root, const NodeRecords& records, const std::string& what) {
  const NameIndex index(root, records);
  std::vector<Subject> found = index.Named(Spelt(what));
  if (found.empty()) {
    if (const auto address = IpAddress::Parse(what)) return AddressSubject(records, *address);
    if (!what.empty()) found = index.ContainersThatBegin(what);
  }
  KeepOnePerDevice(&found);
  if (found.empty()) return Fail(NotFound(index, records, what));
  if (found.size() > 1) return Fail(Ambiguous(found, what));
  return found.front();
}

Result<Subject> FindSubject(const Root& root, const std::string& what) {
  return FindSubject(root, ReadNodeRecords(root), what);
}

}  // namespace railhead::railctl
