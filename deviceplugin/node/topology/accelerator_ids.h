// AcceleratorIds: which accelerator a device plugin means by one of its ids.
//
// kubelet's pod-resources API lists a pod's GPUs under the ids that their plugins made up. Find() understands
// ids by the configured table first. Then it understands these forms, in this order:
//   `0000:1b:00.0`, `00000000:1B:00.0`  A PCI address, of an accelerator or a VF of one.
//   `GPU-<uuid>`                        NVIDIA.
//   `MIG-<uuid>`, `MIG-GPU-<uuid>/1/0`  A slice of an NVIDIA GPU.
//   `nvidia0`, `nvidia0/gi1`            /dev/nvidiaN, as Google's plugin counts.
//   `card1`, `card1-0`                  /dev/dri/cardN, as Intel's plugin counts.
//   `gpu-0`                             /dev/nvidiaN, as NVIDIA's DRA driver counts.
//   `0`, `7`                            A position among the accelerators in PCI order. Only for resources
//                                       named like accelerators: other plugins count from 0, too.
// Each may have a replica's number behind it ("::3", or "-3" after a UUID).
//
// UUIDs come from /proc/driver/nvidia/gpus/*/information, which has one only while the driver has the GPU
// initialised. For others Find() asks `beyond_proc` (NVML). An id that means nothing here gives nullopt, and
// so does everything that cannot be read. The accelerator is then unknown, which is not an error of the
// caller. Threads: immutable; Find() is thread-safe if `beyond_proc` is. Find() reads files.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/root.h"
#include "netns/sys/accelerators.h"
#include "netns/sys/pci_address.h"

namespace railhead::topology {

class AcceleratorIds {
 public:
  using UuidLookup = std::function<std::optional<PciAddress>(const std::string& uuid)>;

  AcceleratorIds(Root root, const std::vector<Accelerator>& accelerators,
                 std::map<std::string, PciAddress> table, UuidLookup beyond_proc = {});

  enum class Effort : std::uint8_t {
    kFiles,    // only /proc and /sys: for calls that somebody waits for
    kLibrary,  // `beyond_proc` too
  };

  // The address of an accelerator, also for an id of one of its VFs.
  // `resource`: under which it was given, or the name of a DRA driver.
  [[nodiscard]] std::optional<PciAddress> Find(std::string_view id, std::string_view resource,
                                               Effort effort = Effort::kLibrary) const;
  // Those of many ids, each once. Asks once for all replicas of a GPU: plugins that count memory give a pod a
  // hundred thousand of them.
  [[nodiscard]] std::vector<PciAddress> FindAll(const std::vector<std::string>& ids,
                                                std::string_view resource,
                                                Effort effort = Effort::kLibrary) const;

  // The UUID that /proc shows for an accelerator; "" when it has none.
  [[nodiscard]] std::string UuidOf(const PciAddress& accelerator) const;

 private:
  [[nodiscard]] std::optional<PciAddress> FindPlain(const std::string& id, std::string_view resource,
                                                    Effort effort) const;
  [[nodiscard]] std::optional<PciAddress> FindUuid(const std::string& uuid, Effort effort) const;
  [[nodiscard]] std::optional<PciAddress> FindMinor(const std::string& minor) const;
  [[nodiscard]] std::optional<PciAddress> FindCard(const std::string& id) const;
  [[nodiscard]] std::optional<PciAddress> AcceleratorAt(const PciAddress& address) const;

  Root root_;
  std::vector<PciAddress> accelerators_;
  std::map<std::string, PciAddress> table_;
  UuidLookup beyond_proc_;
};

// A lookup that calls `lookup` only once for each UUID that it finds: a call may take long.
AcceleratorIds::UuidLookup Remembering(AcceleratorIds::UuidLookup lookup);

// Whether a resource has a name of accelerators: nvidia.com/gpu, huawei.com/Ascend910.
bool NamesAccelerators(std::string_view resource);

}  // namespace railhead::topology
