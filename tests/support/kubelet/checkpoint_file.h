// kubelet's file kubelet_internal_checkpoint
// (pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go, Kubernetes 1.36).
//
// The checksum is the stand-in's own: kubelet's is a hash over Go's printed structures.
// Threads: values. Errors: kMalformed for a file that is not a checkpoint, or whose checksum is wrong.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::testing {

struct PodDevicesEntry {
  std::string pod_uid;
  std::string container;
  std::string resource;
  std::map<int, std::vector<std::string>> ids;  // by NUMA node; -1: without
  std::string response;                         // what Allocate answered, in base64

  [[nodiscard]] std::vector<std::string> Ids() const;  // sorted
};

struct CheckpointData {
  std::vector<PodDevicesEntry> pods;
  std::map<std::string, std::vector<std::string>> registered;  // resource: healthy devices
};

// The form in which Go writes bytes into JSON.
std::string Base64(const std::string& bytes);

std::string CheckpointPath(const std::string& directory);
Result<void> WriteCheckpoint(const std::string& directory, const CheckpointData& data);
// nullopt when the file does not exist.
Result<std::optional<CheckpointData>> ReadCheckpointFile(const std::string& directory);

}  // namespace railhead::testing
