// Whether the ports treat a rail's traffic class as the fabric does.
//
// The traffic class of RoCE v2 is the IP header's byte: DSCP is its upper six bits. A port that has
// DSCP entries in its DCB application table goes by DSCP (mlx5e_dcbnl_ieee_setapp in mlx5/core/en_dcbnl.c
// switches its trust with the first), else by the VLAN tag's priority.
#include <algorithm>
#include <optional>

#include "deviceplugin/tools/doctor/checks.h"

namespace railhead::doctor {
namespace {

int DscpOf(int traffic_class) {
  return traffic_class >> 2;
}

// nullptr: the port trusts tags, or does not know the DSCP.
const DscpEntry* EntryOf(const DcbState& dcb, int dscp) {
  const DscpEntry* found = nullptr;
  for (const DscpEntry& entry : dcb.dscp) {
    // Of several the kernel's drivers take the highest (dcb_ieee_getapp_mask).
    if (entry.dscp == dscp && (found == nullptr || entry.priority > found->priority)) found = &entry;
  }
  return found;
}

// The priority in which the rail's RoCE traffic is on this port.
int PriorityOf(const DcbState& dcb, const Rail& rail) {
  if (!dcb.dscp.empty() && rail.traffic_class) {
    const DscpEntry* entry = EntryOf(dcb, DscpOf(*rail.traffic_class));
    return entry != nullptr ? entry->priority : 0;
  }
  return rail.vlan.value_or(0) != 0 ? rail.vlan_qos : 0;
}

// Nothing is known of how the fabric treats a rail without class and VLAN priority.
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
