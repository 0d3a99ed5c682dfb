#include "cni/attachment/rdma_mode.h"

#include <string>

#include "cni/state/journal.h"
#include "cni/state/paths.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"

namespace railhead::attachment {
namespace {

std::string NameOf(RdmaNetnsMode mode) {
  return mode == RdmaNetnsMode::kExclusive ? "exclusive" : "shared";
}

Result<RdmaNetnsMode> ModeNow(Kernel& kernel) {
  const NetNs host = RH_TRY(kernel.HostNetns());
  const auto rdma = RH_TRY(kernel.OpenRdma(host));
  return rdma->NetnsMode();
}

// "BOOT-ID exclusive"; a record of an earlier boot says nothing about this one.
std::string RecordOf(const std::string& boot_id, RdmaNetnsMode mode) {
  return boot_id + " " + NameOf(mode);
}

Result<void> CompareWithRecord(const Root& root, RdmaNetnsMode now, const std::string& boot_id) {
  const std::string path = paths::RdmaMode(root);
  const auto record = RH_TRY(ReadAttribute(path));
  const RdmaNetnsMode other =
      now == RdmaNetnsMode::kExclusive ? RdmaNetnsMode::kShared : RdmaNetnsMode::kExclusive;
  if (!record || *record != RecordOf(boot_id, other)) return {};
  return Fail(ErrorCode::kConflict,
              "the node's RDMA mode is " + NameOf(now) + ", but it was " + NameOf(other) +
                  " when Railhead first attached a device since the boot: another program has changed it",
              "set it back (rdma system set netns " + NameOf(other) +
                  "), or set \"rdmaMode\" in fabric.json, or remove " + path + " to keep the new mode");
}

Result<void> Compare(const Root& root, RdmaNetnsMode now, std::optional<RdmaNetnsMode> demanded,
                     const std::string& boot_id) {
  if (!demanded) return CompareWithRecord(root, now, boot_id);
  if (now == *demanded) return {};
  return Fail(
      ErrorCode::kConflict,
      "the node's RDMA mode is " + NameOf(now) + ", but the fabric's rdmaMode is " + NameOf(*demanded),
      "rdma system set netns " + NameOf(*demanded) + " (before any pod has a device)");
}

}  // namespace

Result<RdmaNetnsMode> AgreeOnRdmaMode(const Root& root, Kernel& kernel,
                                      std::optional<RdmaNetnsMode> demanded) {
  const RdmaNetnsMode now = RH_TRY(ModeNow(kernel));
  const std::string boot_id = RH_TRY(BootId(root));
  RH_TRY(Compare(root, now, demanded, boot_id));
  const std::string path = paths::RdmaMode(root);
  const std::string record = RecordOf(boot_id, now);
  if (RH_TRY(ReadAttribute(path)) != record) RH_TRY(WriteAtomic(path, record + "\n", Sync::kVolatile));
  return now;
}

Result<void> CheckRdmaMode(const Root& root, Kernel& kernel, std::optional<RdmaNetnsMode> demanded) {
  const auto now = ModeNow(kernel);
  if (!now) return now.error().code == ErrorCode::kUnsupported ? Result<void>() : Fail(now.error());
  return Compare(root, *now, demanded, RH_TRY(BootId(root)));
}

Result<void> AgreeOnRdma(const Root& root, Kernel& kernel, const AttachPlan& plan, DevicePlan& device) {
  AttachedDevice& record = device.record;
  if (record.rdma.device.empty() || record.rdma.soft) return {};
  record.rdma.moved = RH_TRY(AgreeOnRdmaMode(root, kernel, plan.rdma_mode)) == RdmaNetnsMode::kExclusive;
  if (record.rdma.moved && device.allocation && device.allocation->device_nodes == DeviceNodeMode::kMount) {
    return Fail(ErrorCode::kInvalid,
                "device " + record.device +
                    " was allocated with plain device nodes, but the node's RDMA mode is exclusive",
                "the node's number may change with the move: use \"deviceNodes\": \"cdi\" for the pool");
  }
  return {};
}

}  // namespace railhead::attachment
