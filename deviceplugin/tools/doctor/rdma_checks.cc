// RDMA as such: the namespace mode, ports, GID tables.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/tools/doctor/checks.h"
#include "deviceplugin/tools/doctor/verdict.h"
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
// drivers/infiniband/core/cache.c). nullopt: slot 0 does not show it.
std::optional<int> DefaultGids(const std::vector<GidEntry>& table) {
  const auto at = [&](int index) { return std::ranges::find(table, index, &GidEntry::index); };
  const auto first = at(0);
  if (first == table.end() || first->type == GidType::kInfiniband) return std::nullopt;
  if (first->type == GidType::kRoceV2) return 1;
  const auto second = at(1);
  return second != table.end() && second->type == GidType::kRoceV2 ? 2 : 1;
}

// Judges the table, and returns its number of default GIDs.
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
  const bool v2 = Contains(table, GidType::kRoceV2, &GidEntry::type);
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

// RDMA_NLDEV_CMD_SET and RDMA_NLDEV_CMD_DELLINK require CAP_NET_ADMIN over the caller's network namespace
// only (drivers/infiniband/core/netlink.c). In shared mode all devices are in all namespaces.
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
    if (pf.rdma.empty()) continue;  // node.modules reports this PF
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

// mlx5_core makes a VF's GUID from the MAC that its PF sets (mlx5_esw_vport_enable in
// drivers/net/ethernet/mellanox/mlx5/core/eswitch.c). Before that it is zero.
Verdict CheckNodeGuids(const NodeFacts& facts) {
  constexpr const char* kNone = "0000:0000:0000:0000";
  Verdict verdict;
  std::map<std::string, std::vector<std::string>> devices;
  for (const auto& [device, guid] : facts.node_guids) devices[guid].push_back(device);
  for (const auto& [guid, names] : devices) {
    if (guid == kNone) {
      verdict.Warn("no node GUID: " + Join(names, ", "),
                   "give the VF a MAC by its PF (ip link set PF vf N mac MAC), and bind its driver again");
    } else if (names.size() > 1) {
      verdict.Warn("one node GUID, " + guid + ": " + Join(names, ", "),
                   "look for two VFs with one MAC (ip link show PF), or for one image of firmware settings");
    } else {
      verdict.Ok("each device has its own node GUID");
    }
  }
  if (devices.empty()) verdict.Skip("no RDMA device of this namespace shows a node GUID");
  return verdict;
}

// Whether the ports treat a rail's traffic class as the fabric does.
//
// The traffic class of RoCE v2 is a byte of the IP header; its upper six bits are the DSCP. A port with DSCP
// entries in its DCB application table uses the DSCP. The first entry switches its trust
// (mlx5e_dcbnl_ieee_setapp in mlx5/core/en_dcbnl.c). Other ports use the VLAN tag's priority.

namespace {

int DscpOf(int traffic_class) {
  return traffic_class >> 2;
}

// nullptr: the port trusts tags, or does not know the DSCP.
const DscpEntry* EntryOf(const DcbState& dcb, int dscp) {
  const DscpEntry* found = nullptr;
  for (const DscpEntry& entry : dcb.dscp) {
    // If a DSCP has several entries, the kernel's drivers take the highest (dcb_ieee_getapp_mask).
    if (entry.dscp == dscp && (found == nullptr || entry.priority > found->priority)) found = &entry;
  }
  return found;
}

// The priority that this port gives to the rail's RoCE traffic.
int PriorityOf(const DcbState& dcb, const Rail& rail) {
  if (!dcb.dscp.empty() && rail.traffic_class) {
    const DscpEntry* entry = EntryOf(dcb, DscpOf(*rail.traffic_class));
    return entry != nullptr ? entry->priority : 0;
  }
  return rail.vlan.value_or(0) != 0 ? rail.vlan_qos : 0;
}

// Without class and VLAN priority it is unknown how the fabric treats the rail.
bool HasProfile(const Rail& rail) {
  return rail.traffic_class || rail.vlan_qos != 0;
}

// Calls `judge` with each rail's port that can be judged, and notes the others.
template <typename Judge>
Verdict ForEachPort(const NodeFacts& facts, Judge judge) {
  Verdict verdict;
  for (const PfFacts& pf : facts.pfs) {
    const Rail* rail = facts.RailOf(pf);
    if (rail == nullptr) continue;
    if (!pf.dcb) {
      verdict.Skip(pf.Name() + ": " + pf.dcb.why());
    } else if (!HasProfile(*rail)) {
      verdict.Note(rail->name + " has neither trafficClass nor vlanQoS: its traffic is in priority 0",
                   "\"trafficClass\" of the rail in fabric.json, as the switches expect it");
    } else {
      judge(pf, *rail, *pf.dcb, &verdict);
    }
  }
  if (verdict.observations().empty()) verdict.Skip(facts.WhyNoPf());
  return verdict;
}

std::string Priority(int priority) {
  return "priority " + std::to_string(priority);
}

bool Bit(std::uint8_t bits, int number) {
  return ((static_cast<unsigned>(bits) >> static_cast<unsigned>(number)) & 1U) != 0;
}

}  // namespace

Verdict CheckDscp(const NodeFacts& facts) {
  return ForEachPort(facts, [](const PfFacts& pf, const Rail& rail, const DcbState& dcb, Verdict* verdict) {
    if (!rail.traffic_class) {
      verdict->Ok(pf.Name() + ": " + rail.name + " goes by its VLAN priority");
      return;
    }
    const int dscp = DscpOf(*rail.traffic_class);
    const std::string class_text =
        "traffic class " + std::to_string(*rail.traffic_class) + " (DSCP " + std::to_string(dscp) + ")";
    const std::string fix = "dcb app add dev " + pf.netdev + " dscp-prio " + std::to_string(dscp) +
                            ":PRIORITY, or mlnx_qos -i " + pf.netdev + " --trust dscp";
    if (dcb.dscp.empty()) {
      verdict->Warn(
          pf.Name() + " trusts VLAN tags, not DSCP: " + class_text + " of " + rail.name + " is not seen",
          fix);
    } else if (const DscpEntry* entry = EntryOf(dcb, dscp); entry == nullptr) {
      verdict->Warn(pf.Name() + " has no priority for " + class_text + " of " + rail.name, fix);
    } else {
      verdict->Ok(pf.Name() + ": " + class_text + " is " + Priority(entry->priority));
    }
  });
}

Verdict CheckPfc(const NodeFacts& facts) {
  return ForEachPort(facts, [](const PfFacts& pf, const Rail& rail, const DcbState& dcb, Verdict* verdict) {
    const int priority = PriorityOf(dcb, rail);
    if (!dcb.pfc) {
      verdict->Skip(pf.Name() + ": the driver does not tell its PFC");
    } else if (Bit(*dcb.pfc, priority)) {
      verdict->Ok(pf.Name() + ": PFC is on for " + Priority(priority));
    } else {
      verdict->Warn(pf.Name() + ": PFC is off for " + Priority(priority) + " of " + rail.name,
                    "dcb pfc set dev " + pf.netdev + " prio-pfc " + std::to_string(priority) +
                        ":on, the same on the switch");
    }
  });
}

Verdict CheckEts(const NodeFacts& facts) {
  return ForEachPort(facts, [](const PfFacts& pf, const Rail& rail, const DcbState& dcb, Verdict* verdict) {
    if (!dcb.ets) {
      verdict->Skip(pf.Name() + ": the driver does not tell its ETS");
      return;
    }
    const auto priority = static_cast<std::size_t>(PriorityOf(dcb, rail));
    const std::size_t traffic_class = dcb.ets->traffic_classes.at(priority);
    const std::string name = pf.Name() + ": " + Priority(static_cast<int>(priority)) + " is traffic class " +
                             std::to_string(traffic_class);
    if (traffic_class >= kPriorities) {
      verdict->Skip(name + ", of which the driver tells nothing");
      return;
    }
    const int selection = dcb.ets->selection.at(traffic_class);
    const int percent = dcb.ets->bandwidth.at(traffic_class);
    if (selection == kTsaEts && percent == 0) {
      verdict->Warn(name + " with no bandwidth of its own",
                    "dcb ets set dev " + pf.netdev + " tc-bw " + std::to_string(traffic_class) + ":50 ...");
    } else {
      verdict->Ok(name +
                  (selection == kTsaEts ? ", " + std::to_string(percent) + " %" : ", not shared by ETS"));
    }
  });
}

Verdict CheckEcn(const NodeFacts& facts) {
  return ForEachPort(facts, [](const PfFacts& pf, const Rail& rail, const DcbState& dcb, Verdict* verdict) {
    if (!pf.ecn) {
      verdict->Skip(pf.Name() + ": " + pf.ecn.why());
      return;
    }
    const auto priority = static_cast<std::size_t>(PriorityOf(dcb, rail));
    const bool reacts = pf.ecn->reacts.at(priority);
    const bool notifies = pf.ecn->notifies.at(priority);
    const std::string is = Priority(static_cast<int>(priority)) + " of " + rail.name;
    if (reacts && notifies) {
      verdict->Ok(pf.Name() + ": ECN is on for " + is);
      return;
    }
    const std::string directory = "/sys/class/net/" + pf.netdev + "/ecn/";
    const std::string end = "/enable/" + std::to_string(priority);
    verdict->Warn(pf.Name() + ": ECN is not on for " + is,
                  "echo 1 | tee " + directory + "roce_rp" + end + " " + directory + "roce_np" + end);
  });
}

}  // namespace railhead::doctor
