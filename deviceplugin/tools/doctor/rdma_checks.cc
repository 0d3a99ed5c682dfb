// RDMA as such: the namespace mode, ports, GID tables.
#include <algorithm>
#include <optional>

#include "deviceplugin/tools/doctor/checks.h"
#include "netns/base/text.h"

namespace railhead::doctor {
namespace {

std::string NameOfMode(bool exclusive) {
  return exclusive ? "exclusive" : "shared";
}

// rdma_compatdev_set() in drivers/infiniband/core/device.c: EBUSY while any other namespace exists.
std::string HowToChange(const NodeFacts& facts, bool exclusive) {
  const std::string command = "rdma system set netns " + NameOfMode(exclusive);
  const std::string at_boot =
      "at boot: `options ib_core netns_mode=" + std::string(exclusive ? "0" : "1") + "` in /etc/modprobe.d";
  if (facts.other_namespaces && *facts.other_namespaces == 0) return command + " works now; " + at_boot;
  if (facts.other_namespaces) {
    return "not now: there are other network namespaces (" + std::to_string(*facts.other_namespaces) +
           "), the kernel answers EBUSY; " + at_boot + ", and reboot";
  }
  return command + " while no other network namespace exists, else " + at_boot;
}

// How many default GIDs a port begins with: one for each RoCE type (gid_table_reserve_default in
// drivers/infiniband/core/cache.c). nullopt: slot 0 does not tell.
std::optional<int> DefaultGids(const std::vector<GidEntry>& table) {
  const auto at = [&](int index) {
    return std::find_if(table.begin(), table.end(),
                        [&](const GidEntry& entry) { return entry.index == index; });
  };
  const auto first = at(0);
  if (first == table.end() || first->type == GidType::kInfiniband) return std::nullopt;
  if (first->type == GidType::kRoceV2) return 1;
  const auto second = at(1);
  return second != table.end() && second->type == GidType::kRoceV2 ? 2 : 1;
}

// The number of default GIDs of the table, judged.
std::optional<int> JudgeTable(const GidFacts& facts, Verdict* verdict) {
  if (!facts.gids) {
    verdict->Skip(facts.device + ": " + facts.gids.why());
    return std::nullopt;
  }
  const auto& table = *facts.gids;
  if (table.empty()) {
    verdict->Warn(facts.device + " has no GIDs", "is its network device up? ip link; rdma link");
    return std::nullopt;
  }
  const bool v2 = std::any_of(table.begin(), table.end(),
                              [](const GidEntry& entry) { return entry.type == GidType::kRoceV2; });
  if (!v2) {
    verdict->Fail(facts.device + " has no RoCE v2 GID",
                  "RoCE v2 is a setting of the NIC's firmware (mlxconfig: ROCE_CONTROL) or driver");
    return std::nullopt;
  }
  return DefaultGids(table);
}

std::string FirstIndex(const std::string& device, int default_gids) {
  return device + ": an address's first RoCE v2 GID is at " + std::to_string(2 * default_gids - 1) +
         " or later";
}

// RDMA_NLDEV_CMD_SET and RDMA_NLDEV_CMD_DELLINK want CAP_NET_ADMIN over the caller's network namespace alone
// (drivers/infiniband/core/netlink.c), and in shared mode all devices are in all namespaces.
void JudgeSharing(const NodeFacts& facts, Verdict* verdict) {
  if (!facts.records || facts.records->tenants.size() < 2) return;
  const auto& tenants = facts.records->tenants;
  verdict->Warn(
      "pods of " + std::to_string(tenants.size()) + " Kubernetes namespaces (" +
          Join({tenants.begin(), tenants.end()}, ", ") +
          ") share all RDMA devices: one with CAP_NET_ADMIN can rename or delete those of the others",
      "\"rdmaMode\": \"exclusive\" in fabric.json; " + HowToChange(facts, true));
}

}  // namespace

Verdict CheckRdmaMode(const NodeFacts& facts) {
  Verdict verdict;
  if (!facts.rdma_exclusive) return verdict.Skip(facts.rdma_exclusive.why());
  const bool exclusive = *facts.rdma_exclusive;
  if (!exclusive) JudgeSharing(facts, &verdict);
  const std::string is = "the mode is " + NameOfMode(exclusive);
  if (!facts.fabric) return verdict.Ok(is);
  const auto wanted = facts.fabric->rdma_exclusive;
  if (!wanted) {
    return verdict.Note(
        is + ", and fabric.json does not state which it shall be",
        "\"rdmaMode\": \"" + NameOfMode(exclusive) + "\" in fabric.json has it checked everywhere");
  }
  if (*wanted == exclusive) return verdict.Ok(is + ", as fabric.json states");
  return verdict.Fail(is + ", fabric.json states " + NameOfMode(*wanted), HowToChange(facts, *wanted));
}

Verdict CheckPorts(const NodeFacts& facts) {
  Verdict verdict;
  for (const PfFacts& pf : facts.pfs) {
    if (pf.rdma.empty()) continue;  // node.modules tells of it
    const std::string name = pf.rdma + " of " + pf.Name();
    if (!pf.port) {
      verdict.Skip(name + ": " + pf.port.why());
    } else if (*pf.port == PortState::kActive) {
      verdict.Ok(name + " is ACTIVE");
    } else {
      verdict.Fail(name + " is not ACTIVE",
                   "bring the link up: ip link set DEV up; cable, transceiver and switch port: ethtool DEV");
    }
  }
  if (verdict.observations().empty())
    verdict.Skip(facts.pfs.empty() ? facts.WhyNoPf() : "no rail has an RDMA device in this namespace");
  return verdict;
}

Verdict CheckGids(const NodeFacts& facts) {
  Verdict verdict;
  std::optional<int> first;
  std::string first_device;
  for (const PfFacts& pf : facts.pfs) {
    for (const GidFacts& gids : pf.gids) {
      const auto count = JudgeTable(gids, &verdict);
      if (!count) continue;
      if (!first) {
        first = count;
        first_device = gids.device;
      }
      const std::string text = FirstIndex(gids.device, *count);
      if (*count == *first) {
        verdict.Ok(text);
      } else {
        verdict.Warn(std::string(text).append(", unlike ").append(first_device),
                     "do not give pods VFs of both: put the rails into different pools");
      }
    }
  }
  if (verdict.observations().empty())
    verdict.Skip(facts.pfs.empty() ? facts.WhyNoPf() : "no rail has an RDMA device in this namespace");
  return verdict;
}

}  // namespace railhead::doctor
