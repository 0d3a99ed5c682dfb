// CriClient: kubelet's side of the Container Runtime Interface, as far as a pod with one
// sandbox and some containers needs it. One method is one call.
//
// Source: k8s.io/cri-api runtime.v1; the fields that are set are those that kubelet sets
// for a pod without limits, and for a container with the security context of Confinement.
// Threads: thread-safe; each call waits for its answer.
// Errors: kIo (nobody answers at the socket), kTimeout, kNotFound, kInvalid,
// kUnsupported (no CRI there), kConflict (the runtime refuses); the runtime's words are in the message.
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
};

struct MountSpec {
  std::string from;  // of the host
  std::string to;
  bool read_only = false;
  bool follows_host = false;  // mountPropagation: HostToContainer
};

// What Kubernetes calls a restricted container, but for its user: no capabilities but these, no way to get
// others, the root file system read-only, the runtime's seccomp profile, and of /proc what kubelet leaves.
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
  unsigned restarts = 0;  // of it in this sandbox
};

struct ContainerView {
  enum class State { kCreated, kRunning, kExited, kUnknown };
  State state = State::kUnknown;
  int exit_code = 0;
  std::string reason;   // of the exit, e.g. "Completed", "Error", "OOMKilled"
  std::string message;  // more of it; may be empty
  std::string log_path;
};

class CriClient {
 public:
  // `limit` is for every call; it has to be longer than CNI ADD and DEL may take.
  CriClient(std::string socket_path, std::chrono::milliseconds limit);
  ~CriClient();
  CriClient(const CriClient&) = delete;
  CriClient& operator=(const CriClient&) = delete;

  // What is missing before a pod can run ("NetworkReady: cni plugin not initialized");
  // empty: nothing is.
  Result<std::vector<std::string>> Missing();
  Result<bool> HasImage(const std::string& image);

  // The id of the sandbox. After an error nothing of it is left, CNI DEL included.
  Result<std::string> RunPodSandbox(const PodSpec& pod);
  // Both also succeed when it is done already.
  Result<void> StopPodSandbox(const std::string& sandbox);
  Result<void> RemovePodSandbox(const std::string& sandbox);
  Result<std::vector<std::string>> PodSandboxes();
  // eth0's address; empty on the host's network.
  Result<std::string> PodAddress(const std::string& sandbox);

  // `pod` as for the sandbox. Here the runtime resolves the CDI devices.
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
