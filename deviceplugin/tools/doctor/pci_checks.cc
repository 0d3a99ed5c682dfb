// The effect of PCI settings on traffic between accelerators and NICs.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/verdict.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

// ACS Control Register: PCI Express Base Specification, 7.7.11.3; include/uapi/linux/pci_regs.h.
constexpr std::uint16_t kRequestRedirect = 0x04;
constexpr std::uint16_t kCompletionRedirect = 0x08;
constexpr std::uint16_t kUpstreamForwarding = 0x10;

constexpr std::uint16_t kVendorNvidia = 0x10de;

std::string Redirections(std::uint16_t control) {
  std::vector<std::string> names;
  if ((control & kRequestRedirect) != 0) names.emplace_back("ReqRedir");
  if ((control & kCompletionRedirect) != 0) names.emplace_back("CmpltRedir");
  if ((control & kUpstreamForwarding) != 0) names.emplace_back("UpstreamFwd");
  return Join(names, " ");
}

void JudgeGroup(const std::string& name, const Fact<std::string>& iommu, Verdict* verdict) {
  if (!iommu) {
    verdict->Skip(name + ": " + iommu.why());
  } else if (iommu->starts_with("DMA")) {
    verdict->Warn(
        name + ": the IOMMU translates (" + *iommu + ")",
        "kernel command line: iommu=pt (with intel_iommu=on or amd_iommu=on), or switch the IOMMU off");
  } else if (*iommu == "off") {
    verdict->Ok(name + ": no IOMMU");
  } else {
    verdict->Ok(name + ": " + *iommu);
  }
}

// dma-buf export needs the open kernel modules and, in the kernel, ib_umem_dmabuf.
constexpr LinuxRelease kDmabuf{5, 12};

}  // namespace

Verdict CheckAcs(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.bridges) return verdict.Skip(facts.bridges.why());
  for (const BridgeFacts& bridge : *facts.bridges) {
    const std::string name = "bridge " + bridge.address.ToString();
    if (!bridge.acs) {
      verdict.Skip(name + ": " + bridge.acs.why());
      continue;
    }
    const std::uint16_t control = bridge.acs->value_or(0);
    // UpstreamFwd alone redirects no traffic that would not go up anyway.
    if ((control & (kRequestRedirect | kCompletionRedirect)) == 0) {
      verdict.Ok(name + (*bridge.acs ? ": no redirection" : ": no ACS"));
      continue;
    }
    verdict.Fail(name + " between " + bridge.pf.ToString() + " and " + bridge.accelerator.ToString() +
                     " has ACS redirection on (" + Redirections(control) + ")",
                 "setpci -s " + bridge.address.ToString() +
                     " ECAP_ACS+6.w=0 for each of them, at every boot; or switch ACS off in the firmware");
  }
  if (verdict.observations().empty()) verdict.Skip("no accelerator shares a switch with a rail's NIC");
  return verdict;
}

Verdict CheckIommu(const NodeFacts& facts) {
  Verdict verdict;
  for (const PfFacts& pf : facts.pfs) JudgeGroup(pf.Name(), pf.iommu, &verdict);
  if (facts.accelerators) {
    for (const AcceleratorFacts& one : *facts.accelerators)
      JudgeGroup("accelerator " + one.address.ToString(), one.iommu, &verdict);
  } else {
    verdict.Skip("accelerators: " + facts.accelerators.why());
  }
  if (verdict.observations().empty()) verdict.Skip(facts.WhyNoPf() + ", and no accelerator");
  return verdict;
}

Verdict CheckGpuDirect(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.accelerators) return verdict.Skip(facts.accelerators.why());
  const bool any = Contains(*facts.accelerators, kVendorNvidia, &AcceleratorFacts::vendor);
  if (!any) return verdict.Skip("this node has no NVIDIA GPU");
  if (facts.gpu.peermem) return verdict.Ok("nvidia_peermem is loaded");
  if (!facts.gpu.nvidia) return verdict.Warn("NVIDIA's driver is not loaded", "modprobe nvidia nvidia_uvm");
  if (!facts.gpu.open) {
    return verdict.Warn("nvidia_peermem is not loaded; whether the driver has dma-buf is not known (" +
                            facts.gpu.open.why() + ")",
                        "modprobe nvidia_peermem");
  }
  if (*facts.gpu.open && facts.Release() >= kDmabuf)
    return verdict.Ok("NVIDIA's open modules on Linux " + facts.kernel + ": dma-buf");
  const std::string open = *facts.gpu.open ? "Linux " + facts.kernel + " is older than 5.12"
                                           : "the driver is not of the open modules";
  return verdict.Fail("nvidia_peermem is not loaded, and dma-buf is not available: " + open,
                      "modprobe nvidia_peermem");
}

Verdict CheckGpuIds(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.accelerators) return verdict.Skip(facts.accelerators.why());
  const bool any = Contains(*facts.accelerators, kVendorNvidia, &AcceleratorFacts::vendor);
  if (!any) return verdict.Skip("this node has no NVIDIA GPU");
  if (!facts.gpu.nvml) return verdict.Skip(facts.gpu.nvml.why());
  if (*facts.gpu.nvml) return verdict.Ok("railheadd has railhead-nvml");
  const bool late = facts.fabric && Contains(facts.fabric->pools, true, &Pool::late);
  return verdict.Add(
      late ? Status::kWarning : Status::kNote,
      "railheadd has no railhead-nvml, and the GPU of a MIG slice is unknown to it",
      "put railhead-nvml beside railheadd or into /usr/libexec/railhead; or name the slices in "
      "\"ids\" of topology.json");
}

// VFs: how many, in which order, and what they share.

namespace {

// SR-IOV Control: PCI Express Base Specification, 9.3.3.3.5; PCI_SRIOV_CTRL_ARI.
constexpr std::uint16_t kAriHierarchy = 0x10;
// Functions 1 to 7 of the PF's own device need no ARI.
constexpr int kVfsWithoutAri = 7;

// Whether some pool hands out this rail's VFs.
bool WantsVfs(const NodeFacts& facts, const PfFacts& pf) {
  if (!facts.fabric) return true;
  return std::ranges::any_of(facts.fabric->pools, [&](const Pool& pool) {
    return pool.device == PoolDevice::kVf && Contains(pool.rails, pf.rail);
  });
}

// By function: its PF as a position in `pfs`, and its VF index.
using Places = std::map<PciAddress, std::pair<std::size_t, std::size_t>>;

Places PlacesOf(const std::vector<PfFacts>& pfs) {
  Places places;
  for (std::size_t pf = 0; pf < pfs.size(); ++pf) {
    for (std::size_t vf = 0; vf < pfs[pf].vfs.size(); ++vf) places[pfs[pf].vfs[vf]] = {pf, vf};
  }
  return places;
}

// The number of VFs without a limit.
std::size_t Unlimited(const std::map<int, VfSettings>& vfs) {
  return static_cast<std::size_t>(
      std::ranges::count_if(vfs, [](const auto& vf) { return !vf.second.rate || vf.second.rate->max == 0; }));
}

std::string OutOfOrder(const std::string& name, std::size_t vf, const PfFacts& pf) {
  return name + " (VF " + std::to_string(vf) + " of " + pf.Name() + ") comes after ";
}

}  // namespace

Verdict CheckVfCount(const NodeFacts& facts) {
  Verdict verdict;
  for (const PfFacts& pf : facts.pfs) {
    if (!WantsVfs(facts, pf)) continue;
    const std::string has =
        pf.Name() + " has " + std::to_string(pf.vfs.size()) + " of " + std::to_string(pf.total_vfs) + " VFs";
    if (!pf.vfs.empty()) {
      verdict.Ok(has);
    } else if (pf.total_vfs == 0) {
      verdict.Fail(
          pf.Name() + " can have no VFs",
          "switch SR-IOV on in the BIOS and the NIC's firmware (mlxconfig: SRIOV_EN=1 NUM_OF_VFS=N), or "
          "\"device\": \"pf\" in the pool");
    } else {
      verdict.Fail(has, "\"provision\": {\"vfs\": N} in fabric.json, then railctl vfs apply");
    }
  }
  if (verdict.observations().empty())
    verdict.Skip(facts.pfs_unknown.empty() ? "no pool hands out VFs of this node's PFs" : facts.pfs_unknown);
  return verdict;
}

Verdict CheckAri(const NodeFacts& facts) {
  Verdict verdict;
  for (const PfFacts& pf : facts.pfs) {
    if (pf.total_vfs == 0) continue;
    if (!pf.sriov_control) {
      verdict.Skip(pf.Name() + ": " + pf.sriov_control.why());
    } else if ((*pf.sriov_control & kAriHierarchy) != 0) {
      verdict.Ok(pf.Name() + " uses ARI");
    } else if (pf.total_vfs <= kVfsWithoutAri) {
      verdict.Ok(pf.Name() + " needs no ARI");
    } else {
      verdict.Note(
          pf.Name() + ", with up to " + std::to_string(pf.total_vfs) + " VFs, is below a port without ARI",
          "if VFs cannot be made (dmesg: not enough MMIO or bus numbers): ARI forwarding in the firmware");
    }
  }
  if (verdict.observations().empty())
    verdict.Skip(facts.pfs_unknown.empty() ? "no PF has SR-IOV" : facts.pfs_unknown);
  return verdict;
}

Verdict CheckVfOrder(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.rdma_order) return verdict.Skip(facts.rdma_order.why());
  const Places places = PlacesOf(facts.pfs);
  std::optional<std::pair<std::size_t, std::size_t>> last;
  std::string last_name;
  int seen = 0;
  for (const std::string& name : *facts.rdma_order) {
    const auto function = facts.rdma_functions.find(name);
    if (function == facts.rdma_functions.end()) continue;
    const auto place = places.find(function->second);
    if (place == places.end()) continue;
    ++seen;
    if (last && place->second < *last) {
      verdict.Warn(
          OutOfOrder(name, place->second.second, facts.pfs[place->second.first]) + last_name,
          "make the VFs PF by PF, in PCI order, without unbinding some of them: railctl vfs apply; or "
          "NCCL 2.29.7, which sorts by PCI address");
    }
    last = place->second;
    last_name = name;
  }
  if (seen == 0) return verdict.Skip("no VF of a rail has an RDMA device in this namespace");
  if (verdict.observations().empty())
    verdict.Ok(std::to_string(seen) + " RDMA devices of VFs, in their order");
  return verdict;
}

Verdict CheckBandwidth(const NodeFacts& facts) {
  Verdict verdict;
  for (const PfFacts& pf : facts.pfs) {
    const std::string count = std::to_string(pf.vfs.size());
    if (pf.vfs.size() < 2) {
      verdict.Ok(pf.Name() + ": nothing is shared");
    } else if (!pf.vf_settings) {
      verdict.Note(pf.Name() + ": " + count + " VFs share its port; their limits are not known (" +
                   pf.vf_settings.why() + ")");
    } else if (const std::size_t unlimited = Unlimited(*pf.vf_settings); unlimited > 0) {
      verdict.Note(pf.Name() + ": " + count + " VFs share its port, " + std::to_string(unlimited) +
                       " of them without a limit",
                   "max_tx_rate in the CNI configuration, or one VF per PF where jobs need whole ports");
    } else {
      verdict.Ok(pf.Name() + ": each of its " + count + " VFs has a limit");
    }
  }
  if (verdict.observations().empty()) verdict.Skip(facts.WhyNoPf());
  return verdict;
}

namespace {

// ADD switches spoofchk on for the pod where the VF has a MAC of its PF's (cni/attachment/attach_plan.cc).
void JudgeSpoofing(const PfFacts& pf, Verdict* verdict) {
  std::vector<std::string> cannot;
  std::vector<std::string> without_mac;
  for (const auto& [vf, settings] : *pf.vf_settings) {
    if (!settings.spoofchk) cannot.push_back(std::to_string(vf));
    if (settings.spoofchk == false && MacOf(settings).IsZero()) without_mac.push_back(std::to_string(vf));
  }
  if (!cannot.empty())
    verdict->Warn(pf.Name() + ": its driver has no spoofchk for VF " + Join(cannot, ", "),
                  "CAP_NET_RAW to trusted pods only: containers get it by default");
  if (!without_mac.empty())
    verdict->Warn(
        pf.Name() + ": spoofchk cannot be switched on without a MAC of VF " + Join(without_mac, ", "),
        "ip link set PF vf N mac MAC, or \"mac\": \"derived\" in provision of fabric.json");
  if (cannot.empty() && without_mac.empty())
    verdict->Ok(pf.Name() + ": its " + std::to_string(pf.vf_settings->size()) +
                " VFs are on spoofchk in pods");
}

}  // namespace

Verdict CheckSpoofing(const NodeFacts& facts) {
  Verdict verdict;
  for (const PfFacts& pf : facts.pfs) {
    const Rail* rail = facts.RailOf(pf);
    if (pf.vfs.empty()) {
      verdict.Skip(pf.Name() + ": no VFs");
    } else if (rail != nullptr && !rail->spoof_check) {
      verdict.Note(rail->name + " has spoofchk off: its pods may send from any MAC");
    } else if (!pf.vf_settings) {
      verdict.Note(pf.Name() + ": spoofchk of its VFs is not known (" + pf.vf_settings.why() + ")");
    } else {
      JudgeSpoofing(pf, &verdict);
    }
  }
  if (verdict.observations().empty()) verdict.Skip(facts.WhyNoPf());
  return verdict;
}

}  // namespace railhead::doctor
