#include "tests/system/cri/fake_runtime.h"

#include <grpcpp/grpcpp.h>

#include <mutex>
#include <utility>

#include "tests/support/temp_root.h"
#include "tests/system/cri/proto/api.grpc.pb.h"

namespace railhead::testing {

namespace cri = runtime::v1;
using Context = grpc::ServerContext;

class FakeRuntime::Impl final : public cri::RuntimeService::Service, public cri::ImageService::Service {
 public:
  explicit Impl(std::string directory)
      : directory_(std::move(directory)), socket_(directory_ + "/runtime.sock") {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
    builder.RegisterService(static_cast<cri::RuntimeService::Service*>(this));
    builder.RegisterService(static_cast<cri::ImageService::Service*>(this));
    server_ = builder.BuildAndStart();
  }

  grpc::Status RunPodSandbox(Context*, const cri::RunPodSandboxRequest* request,
                             cri::RunPodSandboxResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_pod_ = request->config();
    const std::string id = "sandbox-" + std::to_string(++made_);
    sandboxes_.insert(id);
    response->set_pod_sandbox_id(id);
    return grpc::Status::OK;
  }
  grpc::Status StopPodSandbox(Context*, const cri::StopPodSandboxRequest*,
                              cri::StopPodSandboxResponse*) override {
    return grpc::Status::OK;
  }
  grpc::Status RemovePodSandbox(Context*, const cri::RemovePodSandboxRequest* request,
                                cri::RemovePodSandboxResponse*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    sandboxes_.erase(request->pod_sandbox_id());
    return grpc::Status::OK;
  }
  grpc::Status ListPodSandbox(Context*, const cri::ListPodSandboxRequest*,
                              cri::ListPodSandboxResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& id : sandboxes_) response->add_items()->set_id(id);
    return grpc::Status::OK;
  }
  grpc::Status PodSandboxStatus(Context*, const cri::PodSandboxStatusRequest* request,
                                cri::PodSandboxStatusResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!sandboxes_.contains(request->pod_sandbox_id()))
      return {grpc::StatusCode::NOT_FOUND, "no such sandbox"};
    response->mutable_status()->mutable_network()->set_ip("10.244.0.2");
    return grpc::Status::OK;
  }
  grpc::Status CreateContainer(Context*, const cri::CreateContainerRequest* request,
                               cri::CreateContainerResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    last_container_ = *request;
    const std::string id = "container-" + std::to_string(++made_);
    WriteFileAt(LogOf(id), behaviour_.log);
    containers_[id] = cri::CONTAINER_CREATED;
    response->set_container_id(id);
    return grpc::Status::OK;
  }
  grpc::Status StartContainer(Context*, const cri::StartContainerRequest* request,
                              cri::StartContainerResponse*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!behaviour_.starts) return {grpc::StatusCode::UNKNOWN, "exec format error"};
    containers_[request->container_id()] = behaviour_.ends ? cri::CONTAINER_EXITED : cri::CONTAINER_RUNNING;
    return grpc::Status::OK;
  }
  grpc::Status RemoveContainer(Context*, const cri::RemoveContainerRequest* request,
                               cri::RemoveContainerResponse*) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    containers_.erase(request->container_id());
    return grpc::Status::OK;
  }
  grpc::Status ContainerStatus(Context*, const cri::ContainerStatusRequest* request,
                               cri::ContainerStatusResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = containers_.find(request->container_id());
    if (found == containers_.end()) return {grpc::StatusCode::NOT_FOUND, "no such container"};
    auto* status = response->mutable_status();
    status->set_state(found->second);
    status->set_exit_code(behaviour_.exit_code);
    status->set_reason(behaviour_.exit_code == 0 ? "Completed" : "Error");
    status->set_log_path(LogOf(found->first));
    return grpc::Status::OK;
  }
  grpc::Status Status(Context*, const cri::StatusRequest*, cri::StatusResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!behaviour_.has_cri) return {grpc::StatusCode::UNIMPLEMENTED, "unknown service"};
    auto* condition = response->mutable_status()->add_conditions();
    condition->set_type("NetworkReady");
    condition->set_status(--ready_after_ < 0);
    condition->set_message("cni plugin not initialized");
    return grpc::Status::OK;
  }
  grpc::Status ImageStatus(Context*, const cri::ImageStatusRequest* request,
                           cri::ImageStatusResponse* response) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (images_.contains(request->image().image())) response->mutable_image()->set_id("sha256:0");
    return grpc::Status::OK;
  }

  [[nodiscard]] std::string LogOf(const std::string& id) const { return directory_ + "/" + id + ".log"; }

  const std::string directory_;
  const std::string socket_;
  mutable std::mutex mutex_;
  Behaviour behaviour_;
  int ready_after_ = 0;
  int made_ = 0;
  std::set<std::string> images_;
  std::set<std::string> sandboxes_;
  std::map<std::string, cri::ContainerState> containers_;
  cri::PodSandboxConfig last_pod_;
  cri::CreateContainerRequest last_container_;
  std::unique_ptr<grpc::Server> server_;
};

FakeRuntime::FakeRuntime(const std::string& directory) : impl_(std::make_unique<Impl>(directory)) {}
FakeRuntime::~FakeRuntime() {
  impl_->server_->Shutdown();
}

const std::string& FakeRuntime::socket() const {
  return impl_->socket_;
}

void FakeRuntime::Behave(Behaviour behaviour) {
  const std::lock_guard<std::mutex> lock(impl_->mutex_);
  impl_->behaviour_ = std::move(behaviour);
}

void FakeRuntime::AddImage(const std::string& name) {
  const std::lock_guard<std::mutex> lock(impl_->mutex_);
  impl_->images_.insert(name);
}

void FakeRuntime::ReadyAfter(int calls) {
  const std::lock_guard<std::mutex> lock(impl_->mutex_);
  impl_->ready_after_ = calls;
}

std::set<std::string> FakeRuntime::Sandboxes() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex_);
  return impl_->sandboxes_;
}

std::set<std::string> FakeRuntime::Containers() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex_);
  std::set<std::string> ids;
  for (const auto& [id, state] : impl_->containers_) ids.insert(id);
  return ids;
}

cri::PodSandboxConfig FakeRuntime::LastPod() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex_);
  return impl_->last_pod_;
}

cri::CreateContainerRequest FakeRuntime::LastContainer() const {
  const std::lock_guard<std::mutex> lock(impl_->mutex_);
  return impl_->last_container_;
}

}  // namespace railhead::testing
