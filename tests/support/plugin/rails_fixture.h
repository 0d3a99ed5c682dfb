// A node with three rails, and attachments of several devices at once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/plugin/faults_fixture.h"

namespace railhead::testing {

// What kubelet gave to one container.
struct CheckpointEntry {
  std::string uid;
  std::string container;
  std::string resource;
  std::vector<std::string> ids;
};

class RailsFixture : public FaultsFixture {
 protected:
  void SetUp() override;
  void MakeNics() override;
  [[nodiscard]] virtual int VfsOfEach() const { return 3; }

  // Writes rails in this order, as {name, PF}, with the networks 10.100, 10.200 and 10.150. `more`: further
  // fields of each rail.
  void WriteRails(const std::vector<std::pair<std::string, std::string>>& rails = {{"rail0", "pf0"},
                                                                                   {"rail1", "pf1"},
                                                                                   {"rail2", "pf2"}},
                  const std::string& more = "");
  // Writes it in kubelet's form since Kubernetes 1.20, or in the earlier form.
  void WriteCheckpoint(const std::vector<CheckpointEntry>& all, bool old_form = false);
  static constexpr const char* kCheckpoint = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint";
  [[nodiscard]] std::string Bdf(int rail, int n = 0) const {
    return vfs_.at(static_cast<std::size_t>(rail)).at(static_cast<std::size_t>(n));
  }
  // "devices": [...]
  static std::string Devices(const std::vector<std::string>& bdfs);
  // Addresses by test_ipam with `host` as last byte: for rail0, rail1 and rail2, and for a device that is
  // named by CNI_IFNAME.
  static std::string IpamForAll(int host = 10);
  // One VF of each rail, with addresses.
  [[nodiscard]] Call AllRails(int n = 0, const std::string& container = "c1") const;

  // The names of our interfaces in the pod, sorted.
  std::vector<std::string> OurLinks(const std::string& pod);
};

}  // namespace railhead::testing
