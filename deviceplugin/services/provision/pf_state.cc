#include "deviceplugin/services/provision/pf_state.h"

#include <utility>

#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/state_folder.h"
#include "netns/base/text.h"

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

}  // namespace railhead::provision
