// Who attaches several VFs of a pod: all rails at once, or one after the other.
// All use the same VFs, each after the other's DEL, and the same names in their pods.
// Threads: one object, one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/contender.h"
#include "netns/base/result.h"

namespace railhead::bench {

inline constexpr const char* kIpBatch = "two ip -batch";
inline constexpr const char* kRailsRoute = "10.0.0.0/8";

// One VF and where it goes: rails are 10.100.0.0/24 and 10.200.0.0/24, gateway .254.
struct RailDevice {
  Device device;
  int rail = 0;
  std::string pod_name;

  [[nodiscard]] std::string Subnet() const;
  [[nodiscard]] std::string Gateway() const;
};

struct RailsSetting {
  std::string group;
  int rounds = 0;
  bool soft_roce = false;
  std::string programs;
  std::string before;   // programs of an earlier build; empty: without it
  std::string peers;    // empty: without the standard plugins
  std::string scratch;  // their state
  std::vector<RailDevice> devices;
};

class RailsContender {
 public:
  RailsContender() = default;
  RailsContender(const RailsContender&) = delete;
  RailsContender& operator=(const RailsContender&) = delete;
  virtual ~RailsContender() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string netns() const = 0;
  virtual Result<std::vector<Part>> Add(const std::string& id) = 0;
  virtual Result<std::vector<Part>> Del(const std::string& id) = 0;
};

// The bare kernel: one `ip -batch` on the host, one in the pod, `rdma -batch` where soft
// RoCE is wanted, then waiting for carrier and GIDs as ADD does.
std::unique_ptr<RailsContender> MakeIpBatch(const RailsSetting& setting);
// `probe_ms` < 0: conflict detection as the fabric has it.
std::unique_ptr<RailsContender> MakeRailhead(const RailsSetting& setting, int probe_ms);
// For a pod of that namespace; conflict detection as the fabric has it.
std::unique_ptr<RailsContender> MakeRailheadOf(const RailsSetting& setting, const std::string& pod_namespace);
// The same by the programs of the earlier build.
std::unique_ptr<RailsContender> MakeRailheadBefore(const RailsSetting& setting);
std::unique_ptr<RailsContender> MakeHostDeviceChains(const RailsSetting& setting);

}  // namespace railhead::bench
