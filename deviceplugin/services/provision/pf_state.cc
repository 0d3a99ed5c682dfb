#include "deviceplugin/services/provision/pf_state.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

#include "cni/attachment/host_device.h"
#include "cni/protocol/cni_args.h"
#include "cni/state/journal.h"
#include "cni/state/kubelet_checkpoint.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/fnv.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"
#include "netns/sys/device_nodes.h"
#include "netns/sys/user_space.h"

namespace railhead::provision {
namespace {

std::string UnderWayPath(const Root& root, const PciAddress& pf) {
  return root.Path("/run/railhead/provision/" + pf.ToString());
}

// udev renames a netdev once or twice.
constexpr int kMostNames = 8;

std::optional<Link> FindLink(const LinksByName& links, const std::optional<std::string>& name) {
  const auto found = name ? links.find(*name) : links.end();
  return found == links.end() ? std::nullopt : std::optional<Link>(found->second);
}

// A VF, and a PF without representors, has only one netdev.
Result<std::optional<Link>> LinkIn(const Root& root, RouteApi& host, const LinksByName& links,
                                   const PciAddress& function) {
  const auto name = RH_TRY(UplinkNetdev(root, function));
  if (!name) return std::nullopt;
  auto link = FindLink(links, name);
  return link ? Result<std::optional<Link>>(std::move(link)) : HostLinkOf(root, host, function);
}

// "1 8": as BeforeChange. An older program's mark has no number.
void ReadMark(const std::string& mark, PfActual* pf) {
  pf->interrupted = true;
  const auto words = Split(mark, ' ');
  if (pf->autoprobe) pf->autoprobe = words.front() != "0";
  const auto vfs = words.size() > 1 ? ParseInt(words[1]) : std::nullopt;
  if (vfs && *vfs >= 0 && *vfs <= pf->total_vfs) pf->vfs_before = static_cast<int>(*vfs);
}

// The MAC that DEL will restore.
std::optional<MacAddress> MacAfterRestore(const Root& root, const std::string& device) {
  const auto entry = Journal(root).FindByDevice(device);
  if (!entry || !*entry) return std::nullopt;  // a damaged entry holds the device: see FindVfUses()
  for (const AttachedDevice& link : (*entry)->devices) {
    if (link.device == device && !link.before.mac.IsZero()) return link.before.mac;
  }
  return std::nullopt;
}

Result<VfActual> ReadVf(const Root& root, RouteApi& host, const LinksByName& links, const PciDevice& device) {
  VfActual vf;
  vf.index = device.vf_index.value_or(0);
  vf.address = device.address;
  vf.driver = device.driver.value_or("");
  vf.link = RH_TRY(LinkIn(root, host, links, device.address));
  vf.mac = vf.link ? vf.link->mac : MacAfterRestore(root, device.address.ToString());
  return vf;
}

Result<void> AskForMacs(RouteApi& host, const Link& pf, std::vector<VfActual>& vfs) {
  for (VfActual& vf : vfs) {
    if (vf.mac) continue;
    const auto state = RH_TRY_WRAP(host.GetVf(pf.index, vf.index),
                                   "asking " + pf.name + " for its VF " + std::to_string(vf.index));
    if (state) vf.mac = MacOf(*state);
  }
  return {};
}

}  // namespace

std::string PfActual::Name() const {
  return link ? "PF " + link->name + " (" + address.ToString() + ")" : "PF " + address.ToString();
}

Result<LinksByName> ReadHostLinks(RouteApi& host) {
  LinksByName links;
  for (Link& link : RH_TRY_WRAP(host.ListLinks(), "reading the host's network devices")) {
    std::string name = link.name;
    links.emplace(std::move(name), std::move(link));
  }
  return links;
}

Result<PfActual> ReadPf(const Root& root, RouteApi& host, const LinksByName& links, const PciDevice& pf,
                        const std::string& rail, bool ask_pf) {
  PfActual actual;
  actual.address = pf.address;
  actual.rail = rail;
  actual.driver = pf.driver.value_or("");
  actual.total_vfs = pf.sriov_totalvfs;
  actual.link = RH_TRY(LinkIn(root, host, links, pf.address));
  const std::string directory = root.Path("/sys/bus/pci/devices/") + pf.address.ToString();
  if (const auto probe = RH_TRY(ReadAttribute(directory + "/sriov_drivers_autoprobe")); probe)
    actual.autoprobe = *probe != "0";
  if (const auto mark = RH_TRY(ReadAttribute(UnderWayPath(root, pf.address))); mark) ReadMark(*mark, &actual);
  const auto vfs = RH_TRY(ReadVfs(root, pf.address));
  actual.vfs.reserve(vfs.size());
  for (const PciDevice& vf : vfs) actual.vfs.push_back(RH_TRY(ReadVf(root, host, links, vf)));
  if (ask_pf && actual.link) RH_TRY(AskForMacs(host, *actual.link, actual.vfs));
  return actual;
}

Result<std::optional<Link>> HostLinkOf(const Root& root, RouteApi& host, const PciAddress& function) {
  std::optional<std::string> tried;
  for (int names = 0; names < kMostNames; ++names) {
    const auto name = RH_TRY(UplinkNetdev(root, function));
    // The host did not know this name a moment ago: sysfs belongs to another namespace.
    if (!name || name == tried) return std::nullopt;
    if (auto link = RH_TRY(host.FindLink(*name)); link) return link;
    tried = name;
  }
  return std::nullopt;
}

Result<void> MarkUnderWay(const Root& root, const PciAddress& pf, const BeforeChange& before) {
  const std::string mark = (before.autoprobe ? "1 " : "0 ") + std::to_string(before.vfs) + "\n";
  return WriteStateFile(root, UnderWayPath(root, pf), mark);
}

Result<void> RemoveUnderWay(const Root& root, const PciAddress& pf) {
  RH_TRY(RemoveWritten(UnderWayPath(root, pf)));
  return {};
}

namespace {

// The interval for changes that the kernel does not report.
constexpr std::chrono::milliseconds kLookAgain{100};

}  // namespace

SysfsControl::SysfsControl(Root root) : root_(std::move(root)) {
  if (auto events = Uevents::Open(); events) events_ = std::move(*events);
}

std::string SysfsControl::Attribute(const PciAddress& function, const char* name) const {
  return root_.Path("/sys/bus/pci/devices/") + function.ToString() + "/" + name;
}

Result<void> SysfsControl::SetVfCount(const PciAddress& pf, int count) {
  return WriteAttribute(Attribute(pf, "sriov_numvfs"), std::to_string(count));
}

Result<void> SysfsControl::SetAutoprobe(const PciAddress& pf, bool on) {
  return WriteAttribute(Attribute(pf, "sriov_drivers_autoprobe"), on ? "1" : "0");
}

Result<void> SysfsControl::SetDriverOverride(const PciAddress& function, const std::string& driver) {
  // Only a newline clears it (driver_set_override in drivers/base/driver.c).
  return WriteAttribute(Attribute(function, "driver_override"), driver + "\n");
}

Result<void> SysfsControl::Unbind(const PciAddress& function, const std::string& driver) {
  return WriteAttribute(root_.Path("/sys/bus/pci/drivers/") + driver + "/unbind", function.ToString());
}

Result<void> SysfsControl::Probe(const PciAddress& function) {
  return WriteAttribute(root_.Path("/sys/bus/pci/drivers_probe"), function.ToString());
}

bool SysfsControl::AwaitChange(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd waiting{events_ ? events_->fd() : -1, POLLIN, 0};
  (void)::poll(&waiting, 1, static_cast<int>(std::min(left, kLookAgain).count()));
  if (events_) (void)events_->TakeRelevant();
  return true;
}

namespace {

constexpr std::uint8_t kLocalUnicast = 0x02;

// 12 bits.
std::uint32_t HashOfOui(const MacAddress& mac) {
  const std::uint32_t hash = Fnv1a32({reinterpret_cast<const char*>(mac.bytes.data()), 3});
  return (hash ^ (hash >> 12) ^ (hash >> 24)) & 0xfffU;
}

}  // namespace

MacAddress DerivedVfMac(const MacAddress& pf, int index) {
  const std::uint32_t hash = HashOfOui(pf);
  MacAddress mac;
  mac.bytes[0] = static_cast<std::uint8_t>(((hash >> 8) << 4) | kLocalUnicast);
  mac.bytes[1] = static_cast<std::uint8_t>(hash & 0xffU);
  mac.bytes[2] = pf.bytes[3];
  mac.bytes[3] = pf.bytes[4];
  mac.bytes[4] = pf.bytes[5];
  mac.bytes[5] = static_cast<std::uint8_t>(index);
  return mac;
}

namespace {

std::string PodOf(const JournalEntry& entry) {
  std::string container = "container " + entry.key.container_id;
  const std::string pod = PodName(entry.cni_args);
  if (pod.empty()) return container;
  return "pod " + pod + " (" + container + ")";
}

class Finder {
 public:
  Finder(const Root& root, RouteApi& host) : root_(root), host_(host) {}

  Result<void> Prepare() {
    for (const ContainerDevices& container :
         RH_TRY_WRAP(ReadCheckpoint(root_), "asking which devices kubelet has given out")) {
      if (KubeletForgot(root_, container.pod_uid)) continue;
      for (const std::string& id : container.ids) given_.emplace(id, container.pod_uid);
    }
    open_ = RH_TRY(FindOpenNodes(root_));
    return {};
  }

  Result<std::optional<VfUse>> Use(const VfActual& vf) {
    const std::string device = vf.address.ToString();
    const auto use = [&](std::string why, std::string hint) {
      return VfUse{vf.index, device, std::move(why), std::move(hint)};
    };
    const auto entry = Journal(root_).FindByDevice(device);
    if (!entry) {
      return use("has an attachment that cannot be read: " + entry.error().message,
                 "railctl journal show prints what it holds, railctl journal restore releases it");
    }
    if (*entry) {
      return use("is in " + PodOf(**entry) + " as " + (*entry)->key.ifname,
                 "delete the pod, or drain the node, and try again");
    }
    if (const auto given = given_.find(device); given != given_.end()) {
      return use("is given to the pod with UID " + given->second + " by kubelet",
                 "delete the pod, or drain the node, and try again");
    }
    if (auto process = RH_TRY(UseByProcess(vf, device)); process) return process;
    if (UserSpaceOf(vf.driver) != UserSpace::kNone) return std::nullopt;
    if (vf.link) return UseByHost(vf, device);
    if (vf.driver.empty()) return std::nullopt;
    return use(
        "has driver " + vf.driver + " and no network interface on the host: it is in another namespace",
        "end the pod or container that has it and try again; a driver without network interfaces: "
        "unbind it");
  }

 private:
  // vfio's unbinding waits until its devices are closed (vfio_unregister_group_dev in
  // drivers/vfio/vfio_main.c), if need be for ever.
  Result<std::optional<VfUse>> UseByProcess(const VfActual& vf, const std::string& device) {
    for (const std::string& node : RH_TRY(NodesOf(root_, device))) {
      const auto found = open_.by_path.find(node);
      if (found == open_.by_path.end()) continue;
      return VfUse{vf.index, device, "is used by process " + found->second + " through " + node,
                   "end the process and try again"};
    }
    // Unbinding would wait for a process that has it open. So a process that hides its files counts as a
    // user.
    if (UserSpaceOf(vf.driver) == UserSpace::kNone || open_.hidden.empty()) return std::nullopt;
    return VfUse{
        vf.index, device,
        "has driver " + vf.driver + ", and process " + open_.hidden + " does not show whether it uses it",
        "run railctl vfs apply as root, or give railheadd CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"};
  }

  Result<std::optional<VfUse>> UseByHost(const VfActual& vf, const std::string& device) {
    const auto refused = attachment::RefuseIfHostUses(root_, host_, *vf.link, device);
    if (refused) return std::nullopt;
    if (refused.error().code != ErrorCode::kInvalid) return Fail(refused.error());
    return VfUse{vf.index, device, "is used by the host: " + refused.error().message,
                 "take it from the host's network first"};
  }

  const Root& root_;
  RouteApi& host_;
  std::map<std::string, std::string> given_;  // device -> pod
  OpenNodes open_;
};

}  // namespace

Result<std::vector<VfUse>> FindVfUses(const Root& root, RouteApi& host, const PfActual& pf) {
  std::vector<VfUse> uses;
  if (pf.vfs.empty()) return uses;
  Finder finder(root, host);
  RH_TRY(finder.Prepare());
  for (const VfActual& vf : pf.vfs) {
    if (auto use = RH_TRY(finder.Use(vf)); use) uses.push_back(*std::move(use));
  }
  return uses;
}

Result<std::optional<Error>> FindPfUse(const Root& root, RouteApi& host, const PfActual& pf) {
  const std::string device = pf.address.ToString();
  const auto entry = Journal(root).FindByDevice(device);
  if (!entry) return std::optional<Error>(entry.error());
  if (*entry) {
    return std::optional<Error>(Error{ErrorCode::kBusy, pf.Name() + " is itself in " + PodOf(**entry),
                                      "delete the pod and try again", 0});
  }
  if (!pf.link) return std::nullopt;
  const auto refused = attachment::RefuseIfHostUses(root, host, *pf.link, device);
  if (refused) return std::nullopt;
  if (refused.error().code != ErrorCode::kInvalid) return Fail(refused.error());
  Error error = refused.error();
  error.code = ErrorCode::kBusy;
  error.hint =
      "taking VFs away restarts a PF's link: move the host's network to another NIC first, or set "
      "sriov_numvfs yourself";
  return std::optional<Error>(std::move(error));
}

}  // namespace railhead::provision
