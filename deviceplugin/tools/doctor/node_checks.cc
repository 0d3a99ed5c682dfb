// Limits, modules, drivers and firmware of the node.
#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "deviceplugin/services/health/drains.h"
#include "deviceplugin/tools/doctor/checks.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

// What makes RDMA devices of a driver's PFs.
std::string RdmaModuleOf(const std::string& driver) {
  constexpr std::array<std::pair<std::string_view, const char*>, 9> kModules = {{{"mlx5_core", "mlx5_ib"},
                                                                                 {"mlx4_core", "mlx4_ib"},
                                                                                 {"ice", "irdma"},
                                                                                 {"i40e", "irdma"},
                                                                                 {"bnxt_en", "bnxt_re"},
                                                                                 {"qede", "qedr"},
                                                                                 {"hns3", "hns_roce_hw_v2"},
                                                                                 {"cxgb4", "iw_cxgb4"},
                                                                                 {"mana", "mana_ib"}}};
  for (const auto& [name, module] : kModules) {
    if (name == driver) return module;
  }
  return {};
}

bool IsSoft(const NodeFacts& facts, const PfFacts& pf) {
  const Rail* rail = facts.RailOf(pf);
  return rail != nullptr && rail->soft_roce;
}

void JudgeRdmaDevice(const NodeFacts& facts, const PfFacts& pf, Verdict* verdict) {
  if (IsSoft(facts, pf)) {
    if (facts.rxe) {
      verdict->Ok("rdma_rxe is loaded");
    } else {
      verdict->Note("rdma_rxe is not loaded; the kernel loads it with the first device",
                    "modprobe rdma_rxe shows whether it is installed");
    }
    return;
  }
  if (!pf.rdma.empty()) {
    verdict->Ok(pf.Name() + " is " + pf.rdma);
  } else if (pf.netdev.empty()) {
    verdict->Skip(pf.Name() + " is not in this namespace, nor may its RDMA device be");
  } else {
    const std::string module = RdmaModuleOf(pf.driver);
    verdict->Fail(pf.Name() + " (" + pf.driver + ") has no RDMA device",
                  module.empty() ? "load the RDMA module of its driver, or \"softRoce\": true for the rail"
                                 : "modprobe " + module);
  }
}

std::string Hex(std::uint16_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (unsigned shift = 16; shift > 0; shift -= 4) text += kDigits[(number >> (shift - 4)) & 0xfU];
  return text;
}

std::string WhyDisplaced(const std::string& device, const std::string& name) {
  return "device " + device + " has a substitute name, since another interface is called " + name;
}

}  // namespace

Verdict CheckMemlock(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.runtimes) return verdict.Skip(facts.runtimes.why());
  for (const ProcessFacts& process : *facts.runtimes) {
    const std::string name = process.name + " (process " + std::to_string(process.pid) + ")";
    if (!process.memlock) {
      verdict.Skip(name + ": " + process.memlock.why());
    } else if (*process.memlock == "unlimited") {
      verdict.Ok(name + ": unlimited");
    } else {
      verdict.Warn(name + " may lock " + *process.memlock + " bytes only",
                   "LimitMEMLOCK=infinity in its systemd unit (systemctl edit " + process.name +
                       "), then restart it; or CAP_IPC_LOCK for the containers");
    }
  }
  if (verdict.observations().empty())
    verdict.Skip("no container runtime is among the processes that can be seen (in a container: hostPID)");
  return verdict;
}

Verdict CheckModules(const NodeFacts& facts) {
  Verdict verdict;
  if (facts.verbs) {
    verdict.Ok("ib_uverbs is loaded");
  } else {
    verdict.Fail("ib_uverbs is not loaded", "modprobe ib_uverbs");
  }
  if (facts.rdma_cm) {
    verdict.Ok("rdma_ucm is loaded");
  } else {
    verdict.Warn("rdma_ucm is not loaded: there is no /dev/infiniband/rdma_cm", "modprobe rdma_ucm");
  }
  if (!facts.pfs_unknown.empty()) verdict.Skip(facts.pfs_unknown);
  for (const PfFacts& pf : facts.pfs) JudgeRdmaDevice(facts, pf, &verdict);
  return verdict;
}

Verdict CheckFirmware(const NodeFacts& facts) {
  Verdict verdict;
  // The first of each kind, which the others are to be like.
  std::map<std::pair<std::uint16_t, std::uint16_t>, const PfFacts*> kinds;
  for (const PfFacts& pf : facts.pfs) {
    if (!pf.firmware) {
      verdict.Skip(pf.Name() + ": " + pf.firmware.why());
      continue;
    }
    const std::string text = pf.Name() + ": " + Hex(pf.vendor) + ":" + Hex(pf.device) + ", " + pf.driver +
                             (pf.driver_version ? " " + *pf.driver_version : std::string()) + ", firmware " +
                             *pf.firmware;
    const auto [first, is_first] = kinds.try_emplace({pf.vendor, pf.device}, &pf);
    if (is_first || *first->second->firmware == *pf.firmware) {
      verdict.Ok(text);
    } else {
      verdict.Warn(text + ", unlike " + first->second->Name() + " with " + *first->second->firmware,
                   "bring the NICs to one firmware");
    }
  }
  if (verdict.observations().empty()) verdict.Skip(facts.WhyNoPf());
  return verdict;
}

Verdict CheckRecords(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.records) return verdict.Skip(facts.records.why());
  for (const UnreadableEntry& entry : facts.records->unreadable) {
    verdict.Fail("the journal entry " + entry.key.ToString() + " of " +
                     Join({entry.devices.begin(), entry.devices.end()}, ", ") +
                     " cannot be read: " + entry.error.message,
                 "railctl journal show " + entry.path + "; railctl journal restore " + entry.path);
  }
  for (const auto& [device, name] : facts.records->displaced) {
    verdict.Warn(WhyDisplaced(device, name),
                 "ip link show " + name + "; the device gets its name back when that is free");
  }
  for (const std::string& name : facts.records->altered_specs) {
    verdict.Warn("/run/cdi/" + name + " was removed or changed by another program",
                 "railheadd writes it again with its next pass; find what cleans /run/cdi");
  }
  if (const auto& error = facts.records->drains_error) {
    verdict.Fail("what operators have drained cannot be read, and no device is given out: " + error->message,
                 "mend " + std::string(kDrainsPath) + ", or remove it and drain again");
  }
  for (const Claimant& claimant : facts.records->claimants) {
    verdict.Warn(
        claimant.ToString() + ": ADDs ignore it and use them nevertheless",
        "delete that pod, or switch proxy ARP off if it is a router; \"spoofchk\" keeps pods to one MAC");
  }
  if (const auto& error = facts.records->store_error)
    verdict.Fail("the address store cannot be read: " + error->message, error->hint);
  if (const auto times = facts.records->store_extensions; times != 0) {
    verdict.Note("the address store's file was shorter than it counts, " + std::to_string(times) +
                     " times; nothing was lost, and it was extended",
                 "railctl ipam events says when");
  }
  if (verdict.observations().empty())
    verdict.Ok(
        "all entries, drains and addresses can be read, all devices have their names, all CDI specs are "
        "there");
  return verdict;
}

}  // namespace railhead::doctor
