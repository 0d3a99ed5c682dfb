#include "cni/fabric/handoff_fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

namespace railhead {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

// NCCL's parser (src/misc/param.cc) cuts a value at 1,023 bytes.
constexpr std::size_t kMaxValue = 1022;

struct NumberField {
  const char* key;
  const char* variable;
  int least;
  int most;
};

// What NCCL takes, not more: out of these it warns, clips or fails at the first connection.
constexpr std::array kNumbers = {
    NumberField{"timeout", "NCCL_IB_TIMEOUT", 1, 31},  // 4.096 us * 2^n; 5 bits of the queue pair
    NumberField{"retryCount", "NCCL_IB_RETRY_CNT", 0, 7},
    NumberField{"qpsPerConnection", "NCCL_IB_QPS_PER_CONNECTION", 1, 128},
    NumberField{"fifoTrafficClass", "NCCL_IB_FIFO_TC", 0, 255},
    NumberField{"relaxedOrdering", "NCCL_IB_PCI_RELAXED_ORDERING", 0, 2},
    NumberField{"crossNic", "NCCL_CROSS_NIC", 0, 2},
};

struct SwitchField {
  const char* key;
  const char* variable;
};
constexpr std::array kSwitches = {
    SwitchField{"splitDataOnQps", "NCCL_IB_SPLIT_DATA_ON_QPS"},
    SwitchField{"adaptiveRouting", "NCCL_IB_ADAPTIVE_ROUTING"},
};

constexpr std::array<std::string_view, 6> kLevels = {"LOC", "PIX", "PXB", "P2C", "PHB", "SYS"};

// Another value in each pod, so of no use for all of them.
constexpr std::array<std::string_view, 7> kOfThePod = {
    "NCCL_IB_HCA",        "NCCL_IB_GID_INDEX",        "NCCL_IB_ADDR_FAMILY",
    "NCCL_IB_ADDR_RANGE", "NCCL_IB_ROCE_VERSION_NUM", "NCCL_IB_MERGE_VFS",
    "NCCL_TOPO_FILE"};

template <typename List>
bool Has(const List& list, std::string_view one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

void ReadNccl(JsonReader& nccl, Lines& lines) {
  for (const auto& field : kNumbers) {
    if (const auto number = nccl.Int(field.key, field.least, field.most))
      lines.emplace_back(field.variable, std::to_string(*number));
  }
  for (const auto& field : kSwitches) {
    if (const auto on = nccl.Bool(field.key)) lines.emplace_back(field.variable, *on ? "1" : "0");
  }
  if (const auto level = nccl.String("gdrLevel")) {
    if (!Has(kLevels, *level))
      nccl.Fail("gdrLevel", "'" + *level + "' is not known", "LOC, PIX, PXB, P2C, PHB or SYS");
    lines.emplace_back("NCCL_NET_GDR_LEVEL", *level);
  }
  nccl.Close();
}

bool IsVariable(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(),
                                      [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

void ReadEnv(JsonReader& env, Lines& lines) {
  for (const auto& name : env.Keys()) {
    const auto value = env.String(name);
    if (!IsVariable(name)) env.Fail(name, "is no variable name");
    if (Has(kOfThePod, name))
      env.Fail(name, "is another one in each pod", "leave it out: Railhead finds and writes it");
    if (value && (value->size() > kMaxValue || value->find_first_of("\r\n") != std::string::npos))
      env.Fail(name, "must be one line of at most 1,022 bytes");
    const auto same = [&](const auto& line) { return line.first == name; };
    if (std::any_of(lines.begin(), lines.end(), same))
      env.Fail(name, "is said by a field of handoff.nccl, too", "say it once");
    if (value) lines.emplace_back(name, *value);
  }
}

TopologyPolicy ReadTopologyPolicy(JsonReader& handoff) {
  const std::string text = handoff.String("topology").value_or("needed");
  if (text == "never") return TopologyPolicy::kNever;
  if (text == "always") return TopologyPolicy::kAlways;
  if (text != "needed") handoff.Fail("topology", "'" + text + "' is not known", "never, needed or always");
  return TopologyPolicy::kNeeded;
}

constexpr std::array kStacks = {std::pair{"rccl", HandoffStack::kRccl}, std::pair{"ucx", HandoffStack::kUcx},
                                std::pair{"nvshmem", HandoffStack::kNvshmem},
                                std::pair{"gloo", HandoffStack::kGloo},
                                std::pair{"openmpi", HandoffStack::kOpenMpi}};

std::set<HandoffStack> ReadStacks(JsonReader& handoff, std::set<HandoffStack> fallback) {
  const auto names = handoff.Strings("stacks");
  if (!names) return fallback;
  std::set<HandoffStack> stacks;
  for (const auto& name : *names) {
    const auto* const stack =
        std::find_if(kStacks.begin(), kStacks.end(), [&](const auto& known) { return name == known.first; });
    if (stack == kStacks.end()) {
      handoff.Fail("stacks", "'" + name + "' is not known",
                   "rccl, ucx, nvshmem, gloo or openmpi; NCCL is told in any case");
    } else {
      stacks.insert(stack->second);
    }
  }
  return stacks;
}

}  // namespace

HandoffOptions ReadHandoffOptions(JsonReader& handoff) {
  HandoffOptions options;
  options.topology = ReadTopologyPolicy(handoff);
  options.stacks = ReadStacks(handoff, std::move(options.stacks));
  if (auto nccl = handoff.Object("nccl")) ReadNccl(*nccl, options.env);
  if (auto env = handoff.Object("env")) ReadEnv(*env, options.env);
  return options;
}

}  // namespace railhead
