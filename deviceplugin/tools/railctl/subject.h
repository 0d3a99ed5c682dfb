// Subject: the thing of this node that an argument of a command names.
//
//   const NodeRecords records = ReadNodeRecords(root);
//   const Subject subject = RH_TRY(FindSubject(root, records, "leaf1/Ethernet1/3"));
//
// An argument is one of
//   rail0                  a rail
//   0000:43:10.0, 43:10.0  a PCI address; of a subfunction its name: mlx5_core.sf.2
//   ens1f0v3, mlx5_3       a network device of the host or an RDMA device
//   0c:42:a1:00:00:07      the MAC address of a network device, or of one in a pod
//   leaf1/Ethernet1/3      the switch port of a rail, as LLDP names it
//   train/worker-0         a pod, which its UID names, too
//   3f2a...                a container id or its beginning, or the path of a pod's network namespace
//   10.100.0.7             an IP address, also one that no pod has
//
// All commands that take such an argument ask here. Names are compared whole. Only container ids may be cut,
// and only if nothing else has the text as its name.
//
// Ownership: values. Threads: pure functions, but for reads of sysfs. Errors: kNotFound, with the nearest
// names; kInvalid for a name of several things, with all of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/tools/railctl/node_records.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::railctl {

// In the order in which one is preferred where a text names the same device twice: a rail and its PF.
enum class SubjectKind : std::uint8_t {
  kRail,
  kPf,
  kVf,
  kSubfunction,
  kAccelerator,
  kPod,
  kContainer,
  kAddress
};

struct Subject {
  SubjectKind kind = SubjectKind::kRail;
  std::string name;  // "rail0", "0000:43:10.0", "train/worker-0" (or the UID), a container id, "10.100.0.7"
  // Ids of the devices that it is or has: of a rail its PF and then its VFs, of a pod those of its NICs. Of
  // an address the one that has it. Empty: none.
  std::vector<std::string> devices;
  // Ids of the containers that it is, or that have it.
  std::vector<std::string> containers;
  std::optional<IpAddress> address;

  // A rail or a device, which can be drained and has a state of health.
  [[nodiscard]] bool IsDevice() const { return kind <= SubjectKind::kAccelerator; }

  // "pod train/worker-0"
  [[nodiscard]] std::string Title() const;

  bool operator==(const Subject&) const = default;
};

Result<Subject> FindSubject(const Root& root, const NodeRecords& records, const std::string& what);
// With the records of this node.
Result<Subject> FindSubject(const Root& root, const std::string& what);

}  // namespace railhead::railctl

template <>
struct railhead::Names<railhead::railctl::SubjectKind> {
  using enum railctl::SubjectKind;
  static constexpr std::array kAll = {std::pair{"rail", kRail},
                                      std::pair{"PF", kPf},
                                      std::pair{"VF", kVf},
                                      std::pair{"subfunction", kSubfunction},
                                      std::pair{"accelerator", kAccelerator},
                                      std::pair{"pod", kPod},
                                      std::pair{"container", kContainer},
                                      std::pair{"address", kAddress}};
};
