// HealthProbe: reads the state of a PCI function, cheaply enough to do it all the time.
//
// It caches the paths of network and RDMA devices and finds them again only when they have gone. So a healthy
// VF costs one or two small files, and a VF in a pod costs one link. An attribute that cannot be read because
// its device is just going away is absent.
// Attributes: Documentation/ABI/testing/sysfs-class-net, sysfs-bus-pci-devices-aer,
// stable/sysfs-class-infiniband.
// Threads: one at a time.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "deviceplugin/services/health/driver_source.h"
#include "deviceplugin/services/health/observation.h"
#include "deviceplugin/services/health/rules.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/sys/pci.h"

namespace railhead::health {

class HealthProbe {
 public:
  // `source` is borrowed. With nullptr, observations lack the drivers' state.
  HealthProbe(Root root, DriverSource* source) : root_(std::move(root)), source_(source) {}

  // Reads only what the enabled rules need; `counters`: a PF's counters, too. An error means that the state
  // of this function is unknown now. Failures to read a part go to `problems`, those about counters to
  // `of_counters`.
  Result<Observation> Read(const HealthSubject& subject, const HealthRules& rules, bool counters,
                           std::vector<Error>* problems, std::vector<Error>* of_counters);
  // Drops the cached paths of other functions.
  void KeepOnly(const std::set<std::string>& ids);

 private:
  // Where the function's devices were last seen; "": not seen. The paths contain no links: a look-up through
  // those of /sys/bus and /sys/class costs as much as reading the file.
  struct Place {
    std::string netdev;
    std::string net_directory;
    std::string ibdev;
    std::string port_directory;  // of port 1
  };

  [[nodiscard]] std::string PathOf(const std::string& id) const;
  // Whether the function is there and bound.
  Result<void> ReadPresence(const HealthSubject& subject, Observation* seen);
  Result<void> ReadLinkAndPresence(const HealthSubject& subject, Observation* seen);
  Result<void> FindNetdev(const HealthSubject& subject, Place* place);
  Result<void> FindPort(const HealthSubject& subject, Place* place);
  Result<void> ReadPort(const HealthSubject& subject, Observation* seen);
  Result<void> ReadAer(const std::string& id, const RuleSettings& settings, Observation* seen);
  Result<void> ReadPortCounters(const Place& place, const RuleSettings& settings, Observation* seen);
  Result<void> ReadStatistics(const Place& place, const RuleSettings& settings, Observation* seen);
  void ReadCounters(const HealthSubject& subject, const HealthRules& rules, Observation* seen,
                    std::vector<Error>* problems);
  void ReadReporters(const HealthSubject& subject, const HealthRules& rules, Observation* seen,
                     std::vector<Error>* problems);

  Root root_;
  DriverSource* source_;
  std::map<std::string, Place> places_;
};

}  // namespace railhead::health
