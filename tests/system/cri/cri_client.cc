#include "tests/system/cri/cri_client.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <array>
#include <utility>

#include "tests/system/cri/proto/api.grpc.pb.h"

namespace railhead::testing {
namespace {

namespace cri = runtime::v1;

std::shared_ptr<grpc::Channel> Dial(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // Go's server refuses the encoded socket path that newer gRPC puts there.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The runtime may be just starting, so reconnects come often.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

ErrorCode CodeOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
      return ErrorCode::kIo;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::kTimeout;
    case grpc::StatusCode::NOT_FOUND:
      return ErrorCode::kNotFound;
    case grpc::StatusCode::INVALID_ARGUMENT:
      return ErrorCode::kInvalid;
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kConflict;
  }
}

std::string HintFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kIo:
      return "is the runtime running, and is this its socket?";
    case ErrorCode::kUnsupported:
      return "does this runtime serve CRI v1? containerd's log tells why its CRI plugin did not load";
    case ErrorCode::kTimeout:
      return "see the runtime's log for what it was waiting for";
    default:
      return {};
  }
}

// As kubelet labels sandboxes and containers.
void Label(const PodSpec& pod, google::protobuf::Map<std::string, std::string>* labels) {
  (*labels)["io.kubernetes.pod.name"] = pod.name;
  (*labels)["io.kubernetes.pod.namespace"] = pod.name_space;
  (*labels)["io.kubernetes.pod.uid"] = pod.uid;
}

// kubelet gives each pod with hostUsers: false other ids of the node, and says so to sandbox and container.
constexpr std::uint32_t kIds = 65536;
constexpr std::uint32_t kFirstIdOfNode = 2 * kIds;

void SetNamespaces(const PodSpec& pod, cri::NamespaceOption* namespaces) {
  namespaces->set_network(pod.host_network ? cri::NODE : cri::POD);
  namespaces->set_pid(pod.host_pid ? cri::NODE : cri::CONTAINER);
  if (pod.host_users) return;
  auto* users = namespaces->mutable_userns_options();
  users->set_mode(cri::POD);
  for (auto* mapping : {users->add_uids(), users->add_gids()}) {
    mapping->set_host_id(kFirstIdOfNode);
    mapping->set_container_id(0);
    mapping->set_length(kIds);
  }
}

cri::PodSandboxConfig Config(const PodSpec& pod) {
  cri::PodSandboxConfig config;
  auto* metadata = config.mutable_metadata();
  metadata->set_name(pod.name);
  metadata->set_namespace_(pod.name_space);
  metadata->set_uid(pod.uid);
  metadata->set_attempt(pod.attempt);
  if (!pod.host_network) config.set_hostname(pod.name);
  config.set_log_directory(pod.log_directory);
  // Without DNS options the runtime copies the node's resolv.conf, which may not exist.
  config.mutable_dns_config()->add_options("ndots:5");
  config.mutable_annotations()->insert(pod.annotations.begin(), pod.annotations.end());
  Label(pod, config.mutable_labels());
  SetNamespaces(pod, config.mutable_linux()->mutable_security_context()->mutable_namespace_options());
  return config;
}

// The paths that kubelet masks or makes read-only for a container with procMount "Default" (k8s.io/kubernetes
// pkg/securitycontext/util.go).
constexpr std::array kMasked = {
    "/proc/asound",     "/proc/acpi",        "/proc/kcore",       "/proc/keys", "/proc/latency_stats",
    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware"};
constexpr std::array kProtected = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};

void Confine(const Confinement& confinement, cri::LinuxContainerSecurityContext* context) {
  auto* capabilities = context->mutable_capabilities();
  capabilities->add_drop_capabilities("ALL");
  for (const std::string& name : confinement.capabilities) capabilities->add_add_capabilities(name);
  context->set_readonly_rootfs(true);
  context->set_no_new_privs(true);
  auto* seccomp = context->mutable_seccomp();
  seccomp->set_profile_type(cri::SecurityProfile::RuntimeDefault);
  if (!confinement.seccomp.empty()) {
    seccomp->set_profile_type(cri::SecurityProfile::Localhost);
    seccomp->set_localhost_ref(confinement.seccomp);
  }
  for (const char* path : kMasked) context->add_masked_paths(path);
  for (const char* path : kProtected) context->add_readonly_paths(path);
}

cri::ContainerConfig Config(const PodSpec& pod, const ContainerSpec& container) {
  cri::ContainerConfig config;
  const unsigned attempt = pod.attempt + container.restarts;  // kubelet counts them together
  config.mutable_metadata()->set_name(container.name);
  config.mutable_metadata()->set_attempt(attempt);
  config.mutable_image()->set_image(container.image);
  config.mutable_image()->set_user_specified_image(container.image);  // CRI-O refuses a container without it
  for (const std::string& word : container.command) config.add_command(word);
  for (const auto& [name, value] : container.env) {
    auto* variable = config.add_envs();
    variable->set_key(name);
    variable->set_value(value);
  }
  for (const std::string& device : container.cdi_devices) config.add_cdi_devices()->set_name(device);
  config.mutable_annotations()->insert(container.annotations.begin(), container.annotations.end());
  (*config.mutable_labels())["io.kubernetes.container.name"] = container.name;
  Label(pod, config.mutable_labels());
  config.set_log_path(container.name + "_" + std::to_string(attempt) + ".log");
  for (const MountSpec& spec : container.mounts) {
    auto* mount = config.add_mounts();
    mount->set_host_path(spec.from);
    mount->set_container_path(spec.to);
    mount->set_readonly(spec.read_only);
    if (spec.follows_host) mount->set_propagation(cri::PROPAGATION_HOST_TO_CONTAINER);
  }
  auto* context = config.mutable_linux()->mutable_security_context();
  SetNamespaces(pod, context->mutable_namespace_options());
  if (container.confinement) Confine(*container.confinement, context);
  return config;
}

ContainerView::State StateOf(cri::ContainerState state) {
  switch (state) {
    case cri::CONTAINER_CREATED:
      return ContainerView::State::kCreated;
    case cri::CONTAINER_RUNNING:
      return ContainerView::State::kRunning;
    case cri::CONTAINER_EXITED:
      return ContainerView::State::kExited;
    default:
      return ContainerView::State::kUnknown;
  }
}

}  // namespace

class CriClient::Impl {
 public:
  Impl(std::string socket_path, std::chrono::milliseconds limit)
      : socket_path_(std::move(socket_path)),
        limit_(limit),
        channel_(Dial(socket_path_)),
        runtime_(cri::RuntimeService::NewStub(channel_)),
        images_(cri::ImageService::NewStub(channel_)) {}

  template <typename Request, typename Response, typename Stub>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  template <typename Request, typename Response, typename Stub>
  Result<Response> Call(Stub* stub, Method<Request, Response, Stub> method, const Request& request,
                        const std::string& what) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit_);
    Response response;
    const grpc::Status status = (stub->*method)(&context, request, &response);
    if (status.ok()) return response;
    const ErrorCode code = CodeOf(status.error_code());
    return Fail(code, what + " at " + socket_path_ + ": " + status.error_message(), HintFor(code));
  }

  // A call about one container or sandbox whose answer is empty.
  template <typename Response, typename Request>
  Result<void> Act(Method<Request, Response, cri::RuntimeService::Stub> method, const Request& request,
                   const std::string& what) {
    RH_TRY(Call(runtime_.get(), method, request, what));
    return {};
  }

  [[nodiscard]] cri::RuntimeService::Stub* runtime() const { return runtime_.get(); }
  [[nodiscard]] cri::ImageService::Stub* images() const { return images_.get(); }

 private:
  const std::string socket_path_;
  const std::chrono::milliseconds limit_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<cri::RuntimeService::Stub> runtime_;
  const std::unique_ptr<cri::ImageService::Stub> images_;
};

CriClient::CriClient(std::string socket_path, std::chrono::milliseconds limit)
    : impl_(std::make_unique<Impl>(std::move(socket_path), limit)) {}
CriClient::~CriClient() = default;

Result<std::vector<std::string>> CriClient::Missing() {
  const auto response = RH_TRY(impl_->Call(impl_->runtime(), &cri::RuntimeService::Stub::Status,
                                           cri::StatusRequest(), "asking for the runtime's status"));
  std::vector<std::string> missing;
  if (response.status().conditions().empty()) missing.emplace_back("no condition is reported");
  for (const auto& condition : response.status().conditions()) {
    if (!condition.status()) missing.push_back(condition.type() + ": " + condition.message());
  }
  return missing;
}

Result<bool> CriClient::HasImage(const std::string& image) {
  cri::ImageStatusRequest request;
  request.mutable_image()->set_image(image);
  return RH_TRY(impl_->Call(impl_->images(), &cri::ImageService::Stub::ImageStatus, request,
                            "looking for image " + image))
      .has_image();
}

Result<std::string> CriClient::RunPodSandbox(const PodSpec& pod) {
  cri::RunPodSandboxRequest request;
  *request.mutable_config() = Config(pod);
  return RH_TRY(impl_->Call(impl_->runtime(), &cri::RuntimeService::Stub::RunPodSandbox, request,
                            "making the sandbox of pod " + pod.name))
      .pod_sandbox_id();
}

Result<void> CriClient::StopPodSandbox(const std::string& sandbox) {
  cri::StopPodSandboxRequest request;
  request.set_pod_sandbox_id(sandbox);
  return impl_->Act(&cri::RuntimeService::Stub::StopPodSandbox, request, "stopping sandbox " + sandbox);
}

Result<void> CriClient::RemovePodSandbox(const std::string& sandbox) {
  cri::RemovePodSandboxRequest request;
  request.set_pod_sandbox_id(sandbox);
  return impl_->Act(&cri::RuntimeService::Stub::RemovePodSandbox, request, "removing sandbox " + sandbox);
}

Result<std::vector<std::string>> CriClient::PodSandboxes() {
  const auto response = RH_TRY(impl_->Call(impl_->runtime(), &cri::RuntimeService::Stub::ListPodSandbox,
                                           cri::ListPodSandboxRequest(), "listing the sandboxes"));
  std::vector<std::string> ids;
  ids.reserve(static_cast<std::size_t>(response.items_size()));
  for (const auto& sandbox : response.items()) ids.push_back(sandbox.id());
  return ids;
}

Result<std::string> CriClient::PodAddress(const std::string& sandbox) {
  cri::PodSandboxStatusRequest request;
  request.set_pod_sandbox_id(sandbox);
  return RH_TRY(impl_->Call(impl_->runtime(), &cri::RuntimeService::Stub::PodSandboxStatus, request,
                            "asking for the status of sandbox " + sandbox))
      .status()
      .network()
      .ip();
}

Result<std::string> CriClient::CreateContainer(const std::string& sandbox, const PodSpec& pod,
                                               const ContainerSpec& container) {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(sandbox);
  *request.mutable_config() = Config(pod, container);
  *request.mutable_sandbox_config() = Config(pod);
  return RH_TRY(impl_->Call(impl_->runtime(), &cri::RuntimeService::Stub::CreateContainer, request,
                            "creating container " + container.name + " of pod " + pod.name))
      .container_id();
}

Result<void> CriClient::StartContainer(const std::string& container) {
  cri::StartContainerRequest request;
  request.set_container_id(container);
  return impl_->Act(&cri::RuntimeService::Stub::StartContainer, request, "starting container " + container);
}

Result<void> CriClient::StopContainer(const std::string& container, std::chrono::seconds grace) {
  cri::StopContainerRequest request;
  request.set_container_id(container);
  request.set_timeout(grace.count());
  return impl_->Act(&cri::RuntimeService::Stub::StopContainer, request, "stopping container " + container);
}

Result<void> CriClient::RemoveContainer(const std::string& container) {
  cri::RemoveContainerRequest request;
  request.set_container_id(container);
  return impl_->Act(&cri::RuntimeService::Stub::RemoveContainer, request, "removing container " + container);
}

Result<std::vector<std::string>> CriClient::Containers(const std::string& sandbox) {
  cri::ListContainersRequest request;
  request.mutable_filter()->set_pod_sandbox_id(sandbox);
  const auto response = RH_TRY(impl_->Call(impl_->runtime(), &cri::RuntimeService::Stub::ListContainers,
                                           request, "listing the containers of sandbox " + sandbox));
  std::vector<std::string> ids;
  ids.reserve(static_cast<std::size_t>(response.containers_size()));
  for (const auto& container : response.containers()) ids.push_back(container.id());
  return ids;
}

Result<ContainerView> CriClient::ContainerStatus(const std::string& container) {
  cri::ContainerStatusRequest request;
  request.set_container_id(container);
  const auto response = RH_TRY(impl_->Call(impl_->runtime(), &cri::RuntimeService::Stub::ContainerStatus,
                                           request, "asking for the status of container " + container));
  ContainerView view;
  view.state = StateOf(response.status().state());
  view.exit_code = response.status().exit_code();
  view.reason = response.status().reason();
  view.message = response.status().message();
  view.log_path = response.status().log_path();
  return view;
}

}  // namespace railhead::testing
