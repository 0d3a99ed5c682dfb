#include "cni/nccl/nccl_path.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>

#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::nccl {
namespace {

constexpr std::uint32_t kNetworkClass = 0x02;
constexpr std::uint32_t kBridgeClass = 0x06;

// DDDD:BB:DD.F: the digits count from the end, as NCCL counts them.
constexpr std::size_t kFunctionDigit = 1;
constexpr std::size_t kDeviceDigits = 4;

std::string Stripped(std::string path, bool merge_vfs) {
  path[path.size() - kFunctionDigit] = '0';
  if (merge_vfs) path.replace(path.size() - kDeviceDigits, 2, "00");
  return path;
}

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Result<NcclPath> Judge(const Root& root, const PciDevice& nic, bool merge_vfs) {
  NcclPath seen{.path = Stripped(nic.path, merge_vfs), .holds = true, .why_not = {}};
  if (seen.path == nic.path) return seen;
  const std::string name = BaseName(seen.path);
  const std::string claim = "NCCL takes " + nic.address.ToString() + " for " + name;
  const auto wrong = [&](const std::string& why) {
    return NcclPath{.path = seen.path, .holds = false, .why_not = std::string(claim).append(why)};
  };
  const auto address = PciAddress::Parse(name);
  if (!address) return wrong(", which is not a PCI address");
  const auto function = RH_TRY(ReadPciFunction(root, *address));
  if (!function) return wrong(", which does not exist");
  if (function->path != seen.path) return wrong(", which is below another bridge");
  const std::uint32_t base = function->class_code >> 16;
  if (base == kBridgeClass) return wrong(", which is a bridge");
  if (base != kNetworkClass) return wrong(", which is not a network controller");
  return seen;
}

Result<NcclNicView> ViewOfOne(const Root& root, const NcclNic& nic) {
  NcclNicView view{.rdma_device = nic.rdma_device, .address = nic.address, .merged = {}, .unmerged = {}};
  if (nic.soft_roce) {
    view.merged.why_not = nic.rdma_device + " is a soft RoCE device, for which NCCL finds no PCI path";
    view.unmerged = view.merged;
    return view;
  }
  const auto function = RH_TRY(ReadPciFunction(root, nic.address));
  if (!function) {
    return Fail(ErrorCode::kNotFound,
                "looking for the PCI path of " + nic.rdma_device + ": function " + nic.address.ToString() +
                    " is not in sysfs",
                "see whether its PF still has its VFs (sriov_numvfs), and attach the pod again");
  }
  view.merged = RH_TRY(Judge(root, *function, true));
  view.unmerged = RH_TRY(Judge(root, *function, false));
  return view;
}

MergeVfs Choose(const std::vector<NcclNicView>& nics) {
  if (std::ranges::all_of(nics, [](const auto& nic) { return nic.merged.holds; })) return MergeVfs::kDefault;
  if (std::ranges::all_of(nics, [](const auto& nic) { return nic.unmerged.holds; })) return MergeVfs::kOff;
  return MergeVfs::kNeither;
}

// The nodes of NCCL's tree from the host bridge down to the NIC itself. NCCL climbs two bridges at a time, a
// switch's downstream and upstream port. A single bridge that remains is a root port, which NCCL omits.
std::vector<std::string> Climb(const std::string& path) {
  const std::vector<std::string> parts = PartsOfPciPath(path);
  std::vector<std::string> nodes;
  for (std::size_t at = parts.size() - 1; at > 0; at -= std::min<std::size_t>(at, 2)) {
    nodes.push_back(parts[at]);
  }
  nodes.push_back(parts.front());
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

// ncclTopoGetPath: PATH_PORT, at which NCCL merges by default (NCCL_NET_MERGE_LEVEL).
bool AreMergedAsPorts(const NcclPath& a, const NcclPath& b) {
  // All devices without a place share the first CPU's <nic>.
  if (!a.holds || !b.holds) return !a.holds && !b.holds;
  const std::vector<std::string> left = Climb(a.path);
  const std::vector<std::string> right = Climb(b.path);
  const auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (l == left.end() || r == right.end()) return l == left.end() && r == right.end();
  if (l == left.begin()) return false;  // other host bridges
  return l->size() == r->size() && l->compare(0, l->size() - 1, *r, 0, r->size() - 1) == 0;
}

// Like ncclTopoAutoMerge: the first free device takes all other free devices that it merges with.
std::vector<std::vector<std::string>> GroupVirtualNics(const std::vector<NcclNicView>& nics,
                                                       MergeVfs merge_vfs) {
  const auto seen = [&](const NcclNicView& nic) -> const NcclPath& {
    return merge_vfs == MergeVfs::kOff ? nic.unmerged : nic.merged;
  };
  std::vector<bool> placed(nics.size(), false);
  std::vector<std::vector<std::string>> groups;
  for (std::size_t first = 0; first < nics.size(); ++first) {
    if (placed[first]) continue;
    std::vector<std::string> group = {nics[first].rdma_device};
    for (std::size_t other = first + 1; other < nics.size(); ++other) {
      if (placed[other] || !AreMergedAsPorts(seen(nics[first]), seen(nics[other]))) continue;
      placed[other] = true;
      group.push_back(nics[other].rdma_device);
    }
    if (group.size() < 2) continue;
    std::ranges::sort(group);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> NcclView::Variables() const {
  std::vector<std::pair<std::string, std::string>> variables;
  if (merge_vfs == MergeVfs::kOff) variables.emplace_back("NCCL_IB_MERGE_VFS", "0");
  if (!virtual_nics.empty()) {
    variables.emplace_back("NCCL_IB_MERGE_NICS", "0");
    variables.emplace_back("NCCL_NET_MERGE_LEVEL", "LOC");
  }
  return variables;
}

Result<NcclView> NcclViewOf(const Root& root, std::vector<NcclNic> nics) {
  std::ranges::sort(nics, [](const NcclNic& a, const NcclNic& b) {
    return std::tie(a.address, a.rdma_device) < std::tie(b.address, b.rdma_device);
  });
  NcclView view;
  for (const NcclNic& nic : nics) view.nics.push_back(RH_TRY(ViewOfOne(root, nic)));
  view.merge_vfs = Choose(view.nics);
  view.virtual_nics = GroupVirtualNics(view.nics, view.merge_vfs);
  return view;
}

}  // namespace railhead::nccl
