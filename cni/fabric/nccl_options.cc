// The lines of nccl.conf that a fabric's options give.
#include <string>
#include <utility>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

template <typename T>
void AddLine(const char* variable, const std::optional<T>& value, Lines& lines) {
  if (!value) return;
  if constexpr (HasNames<T>) {
    lines.emplace_back(variable, WordOf(*value));
  } else {
    lines.emplace_back(variable, std::to_string(static_cast<int>(*value)));
  }
}

}  // namespace

Lines NcclTuning::Lines() const {
  std::vector<std::pair<std::string, std::string>> lines;
  AddLine("NCCL_IB_TIMEOUT", timeout, lines);
  AddLine("NCCL_IB_RETRY_CNT", retry_count, lines);
  AddLine("NCCL_IB_QPS_PER_CONNECTION", qps_per_connection, lines);
  AddLine("NCCL_IB_FIFO_TC", fifo_traffic_class, lines);
  AddLine("NCCL_IB_PCI_RELAXED_ORDERING", relaxed_ordering, lines);
  AddLine("NCCL_CROSS_NIC", cross_nic, lines);
  AddLine("NCCL_IB_SPLIT_DATA_ON_QPS", split_data_on_qps, lines);
  AddLine("NCCL_IB_ADAPTIVE_ROUTING", adaptive_routing, lines);
  AddLine("NCCL_NET_GDR_LEVEL", gdr_level, lines);
  return lines;
}

std::vector<std::pair<std::string, std::string>> NcclConfigOptions::Lines() const {
  auto lines = nccl.Lines();
  lines.insert(lines.end(), env.begin(), env.end());
  return lines;
}

}  // namespace railhead
