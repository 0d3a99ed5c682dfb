// What PCI does to traffic between accelerators and NICs.
#include <algorithm>

#include "deviceplugin/tools/doctor/checks.h"
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

// dma-buf export needs the open kernel modules and, in the kernel, ib_umem_dmabuf (5.12).
bool KernelHasDmabuf(const std::string& release) {
  const auto parts = Split(release, '.');
  if (parts.size() < 2) return false;
  const auto major = ParseInt(parts[0]);
  const auto digits = parts[1].find_first_not_of("0123456789");
  const auto minor = ParseInt(parts[1].substr(0, digits));
  return major && minor && (*major > 5 || (*major == 5 && *minor >= 12));
}

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
    // UpstreamFwd alone sends nothing up that would not go there anyway.
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
  const bool any = std::any_of(facts.accelerators->begin(), facts.accelerators->end(),
                               [](const AcceleratorFacts& one) { return one.vendor == kVendorNvidia; });
  if (!any) return verdict.Skip("this node has no NVIDIA GPU");
  if (facts.gpu.peermem) return verdict.Ok("nvidia_peermem is loaded");
  if (!facts.gpu.nvidia) return verdict.Warn("NVIDIA's driver is not loaded", "modprobe nvidia nvidia_uvm");
  if (!facts.gpu.open) {
    return verdict.Warn("nvidia_peermem is not loaded; whether the driver has dma-buf is not known (" +
                            facts.gpu.open.why() + ")",
                        "modprobe nvidia_peermem");
  }
  if (*facts.gpu.open && KernelHasDmabuf(facts.gpu.kernel))
    return verdict.Ok("NVIDIA's open modules on Linux " + facts.gpu.kernel + ": dma-buf");
  const std::string open = *facts.gpu.open ? "Linux " + facts.gpu.kernel + " is older than 5.12"
                                           : "the driver is not of the open modules";
  return verdict.Fail("nvidia_peermem is not loaded, and there is no dma-buf: " + open,
                      "modprobe nvidia_peermem");
}

}  // namespace railhead::doctor
