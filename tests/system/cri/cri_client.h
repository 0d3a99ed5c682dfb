// CriClient: kubelet's side of the Container Runtime Interface, as far as a pod with one
// sandbox and some containers needs it. One method is one call.
//
// Source: k8s.io/cri-api runtime.v1. It sets the fields that kubelet sets for a pod without limits, and for a
// container with the security context of Confinement.
// Threads: thread-safe; each call waits for its answer.
// Errors: kIo (the socket does not answer), kTimeout, kNotFound, kInvalid, kUnsupported (the server has no
// CRI), kConflict (the runtime refuses). The message has the runtime's own text.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/result.h"

namespace railhead::testing {

struct PodSpec {
  std::string name;
  std::string name_space = "default";
  std::string uid;  // the CNI plugins get it as K8S_POD_UID
  unsigned attempt = 0;
  std::string log_directory;
  std::map<std::string, std::string> annotations;
  bool host_network = false;  // no CNI ADD
  bool host_pid = false;
  bool host_users = true;  // false: a user namespace of its own, with 65,536 ids
};

struct MountSpec {
  std::string from;  // of the host
  std::string to;
  bool read_only = false;
  bool follows_host = false;  // mountPropagation: HostToContainer
};

// Kubernetes' restricted container, except for its user. It has only these capabilities and cannot get
// others. The root file system is read-only. It has the runtime's seccomp profile, and sees the parts of
// /proc that kubelet allows.
struct Confinement {
  std::vector<std::string> capabilities;  // "NET_ADMIN"
  std::string seccomp;                    // a profile's path on the node; empty: the runtime's own
};

struct ContainerSpec {
  std::string name;
  std::string image;
  std::vector<std::string> command;  // empty: the image's
  std::map<std::string, std::string> env;
  std::vector<std::string> cdi_devices;  // "railhead.io/nic=0000:43:10.0"
  std::map<std::string, std::string> annotations;
  std::vector<MountSpec> mounts;
  std::optional<Confinement> confinement;
  unsigned restarts = 0;  // the container's restarts in this sandbox
};

struct ContainerView {
  enum class State { kCreated, kRunning, kExited, kUnknown };
  State state = State::kUnknown;
  int exit_code = 0;
  std::string reason;   // of the exit, e.g. "Completed", "Error", "OOMKilled"
  std::string message;  // further details; may be empty
  std::string log_path;
};

class CriClient {
 public:
  // `limit` applies to every call. It has to be longer than CNI ADD and DEL may take.
  CriClient(std::string socket_path, std::chrono::milliseconds limit);
  ~CriClient();
  CriClient(const CriClient&) = delete;
  CriClient& operator=(const CriClient&) = delete;

  // The conditions that the runtime does not meet yet ("NetworkReady: cni plugin not initialized"); empty: it
  // can run pods.
  Result<std::vector<std::string>> Missing();
  Result<bool> HasImage(const std::string& image);

  // Returns the sandbox's id. After an error the sandbox is removed, including CNI DEL.
  Result<std::string> RunPodSandbox(const PodSpec& pod);
  // Both also succeed if the sandbox has already stopped or gone.
  Result<void> StopPodSandbox(const std::string& sandbox);
  Result<void> RemovePodSandbox(const std::string& sandbox);
  Result<std::vector<std::string>> PodSandboxes();
  // eth0's address; empty on the host's network.
  Result<std::string> PodAddress(const std::string& sandbox);

  // `pod` is the sandbox's. In this call the runtime resolves the CDI devices.
  Result<std::string> CreateContainer(const std::string& sandbox, const PodSpec& pod,
                                      const ContainerSpec& container);
  Result<void> StartContainer(const std::string& container);
  Result<void> StopContainer(const std::string& container, std::chrono::seconds grace);
  Result<void> RemoveContainer(const std::string& container);
  Result<std::vector<std::string>> Containers(const std::string& sandbox);
  Result<ContainerView> ContainerStatus(const std::string& container);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace railhead::testing
