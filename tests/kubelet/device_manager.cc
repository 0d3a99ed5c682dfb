#include "tests/kubelet/device_manager.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "deviceplugin/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"
#include "netns/base/files.h"

namespace railhead::testing {
namespace {

using std::chrono::seconds;
constexpr seconds kDialLimit{10};
constexpr seconds kPreStartLimit{30};
constexpr seconds kCallLimit{60};  // kubelet has none here; a test must end

Error StatusError(const std::string& what, const grpc::Status& status) {
  static constexpr const char* kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto code = static_cast<std::size_t>(status.error_code());
  const std::string name = code < std::size(kNames) ? kNames[code] : std::to_string(code);
  return {ErrorCode::kConflict, what + ": " + name + ": " + status.error_message(), "", 0};
}

template <typename Ids>
std::vector<std::string> ToVector(const Ids& ids) {
  return {ids.begin(), ids.end()};
}

// One plugin's endpoint: options and the device list as its stream tells it.
class Plugin {
 public:
  Plugin(const std::string& socket_path, std::function<void()> changed) : changed_(std::move(changed)) {
    grpc::ChannelArguments arguments;
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ =
        grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1beta1::DevicePlugin::NewStub(channel_);
  }
  ~Plugin() { Disconnect(); }
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  grpc::Status Connect() {
    const auto deadline = std::chrono::system_clock::now() + kDialLimit;
    if (!channel_->WaitForConnected(deadline)) {
      return {grpc::StatusCode::DEADLINE_EXCEEDED, "failed to dial device plugin"};
    }
    grpc::ClientContext context;
    context.set_deadline(deadline);
    v1beta1::DevicePluginOptions options;
    grpc::Status status = stub_->GetDevicePluginOptions(&context, {}, &options);
    pre_start_ = options.pre_start_required();
    preferred_ = options.get_preferred_allocation_available();
    return status;
  }

  void Watch() {
    watcher_ = std::thread([this] {
      const auto stream = stub_->ListAndWatch(&context_, {});
      v1beta1::ListAndWatchResponse message;
      while (stream->Read(&message)) Replace(message);
      (void)stream->Finish();
      MarkUnhealthy();
    });
  }

  void Disconnect() {
    context_.TryCancel();
    if (watcher_.joinable()) watcher_.join();
  }

  [[nodiscard]] std::vector<SeenDevice> devices() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return devices_;
  }
  [[nodiscard]] int lists() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return lists_;
  }
  [[nodiscard]] bool pre_start() const { return pre_start_; }
  [[nodiscard]] bool preferred() const { return preferred_; }
  v1beta1::DevicePlugin::Stub* stub() { return stub_.get(); }

 private:
  void Replace(const v1beta1::ListAndWatchResponse& message) {
    std::vector<SeenDevice> devices;
    for (const auto& device : message.devices()) {
      SeenDevice seen{device.id(), device.health() == "Healthy", {}};
      for (const auto& node : device.topology().nodes())
        seen.numa_nodes.push_back(static_cast<int>(node.id()));
      devices.push_back(std::move(seen));
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      devices_ = std::move(devices);
      ++lists_;
    }
    changed_();
  }
  void MarkUnhealthy() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (SeenDevice& device : devices_) device.healthy = false;
    }
    changed_();
  }

  const std::function<void()> changed_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  grpc::ClientContext context_;  // of ListAndWatch
  std::thread watcher_;
  bool pre_start_ = false;
  bool preferred_ = false;
  mutable std::mutex mutex_;
  std::vector<SeenDevice> devices_;
  int lists_ = 0;
};

}  // namespace

class DeviceManager::Impl final : public v1beta1::Registration::Service {
 public:
  explicit Impl(std::string directory) : directory_(std::move(directory)), random_(std::random_device()()) {}

  Result<void> Start() {
    RH_TRY(RemoveSockets());
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + directory_ + "/kubelet.sock", grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (!server_) return Fail(ErrorCode::kIo, "serving " + directory_ + "/kubelet.sock");
    return {};
  }

  void Stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + seconds(1));
    server_.reset();
    std::map<std::string, std::shared_ptr<Plugin>> plugins;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      plugins.swap(plugins_);
    }
    for (auto& [resource, plugin] : plugins) plugin->Disconnect();
  }

  grpc::Status Register(grpc::ServerContext* /*context*/, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*response*/) override {
    if (request->version() != "v1beta1") {
      return {grpc::StatusCode::UNKNOWN,
              "requested API version \"" + request->version() + "\" is not supported"};
    }
    auto plugin = std::make_shared<Plugin>(directory_ + "/" + request->endpoint(), [this] { Notify(); });
    if (const grpc::Status status = plugin->Connect(); !status.ok()) {
      return {grpc::StatusCode::UNKNOWN, status.error_message()};
    }
    std::shared_ptr<Plugin> old;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      old = std::exchange(plugins_[request->resource_name()], plugin);
      ++registrations_[request->resource_name()];
    }
    plugin->Watch();
    if (old) old->Disconnect();
    return grpc::Status::OK;
  }

  Result<std::vector<SeenDevice>> Devices(const std::string& resource, std::size_t count, Deadline deadline) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      const auto found = plugins_.find(resource);
      const auto devices = found == plugins_.end() ? std::vector<SeenDevice>{} : found->second->devices();
      const auto healthy = static_cast<std::size_t>(std::count_if(
          devices.begin(), devices.end(), [](const SeenDevice& device) { return device.healthy; }));
      if (healthy >= count) return devices;
      if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
        return Fail(ErrorCode::kTimeout, "waiting for " + std::to_string(count) + " healthy devices of " +
                                             resource + ": there are " + std::to_string(healthy));
      }
    }
  }

  std::vector<SeenDevice> Present(const std::string& resource) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = plugins_.find(resource);
    return found == plugins_.end() ? std::vector<SeenDevice>{} : found->second->devices();
  }
  int Lists(const std::string& resource) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = plugins_.find(resource);
    return found == plugins_.end() ? 0 : found->second->lists();
  }

  Result<SeenAllocation> Allocate(const std::string& resource, std::size_t count) {
    const auto plugin = RH_TRY(Find(resource));
    auto free = Free(resource, *plugin);
    if (free.size() < count) {
      return Fail(ErrorCode::kExhausted, "requested number of devices unavailable for " + resource +
                                             ": requested " + std::to_string(count) + ", available " +
                                             std::to_string(free.size()));
    }
    std::shuffle(free.begin(), free.end(), random_);
    std::vector<std::string> chosen = free;
    if (count < free.size() && plugin->preferred()) {
      chosen = RH_TRY(Preferred(plugin.get(), free, count));
      for (const std::string& id : free) {
        if (std::find(chosen.begin(), chosen.end(), id) == chosen.end()) chosen.push_back(id);
      }
    }
    chosen.resize(count);
    std::shuffle(chosen.begin(), chosen.end(), random_);
    return Call(resource, plugin.get(), chosen);
  }

  void Release(const std::string& resource, const std::vector<std::string>& ids) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const std::string& id : ids) allocated_[resource].erase(id);
  }

  Result<void> PreStart(const std::string& resource, const std::vector<std::string>& ids) {
    const auto plugin = RH_TRY(Find(resource));
    if (!plugin->pre_start()) return {};
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPreStartLimit);
    v1beta1::PreStartContainerRequest request;
    for (const std::string& id : ids) request.add_device_ids(id);
    v1beta1::PreStartContainerResponse response;
    const grpc::Status status = plugin->stub()->PreStartContainer(&context, request, &response);
    if (!status.ok()) return Fail(StatusError("PreStartContainer of " + resource, status));
    return {};
  }

  int Registrations(const std::string& resource) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = registrations_.find(resource);
    return found == registrations_.end() ? 0 : found->second;
  }

 private:
  Result<void> RemoveSockets() const {
    const auto names = RH_TRY(ListDirectory(directory_));
    if (!names) return Fail(ErrorCode::kNotFound, directory_ + " does not exist");
    for (const std::string& name : *names) {
      struct stat status {};
      const std::string path = directory_ + "/" + name;
      // The stand-in's own control socket is not part of the play.
      if (name == "control.sock" || ::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode))
        continue;
      RH_TRY(RemoveFile(path));
    }
    return {};
  }

  void Notify() {
    const std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
  }

  Result<std::shared_ptr<Plugin>> Find(const std::string& resource) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = plugins_.find(resource);
    if (found == plugins_.end()) return Fail(ErrorCode::kNotFound, "no plugin has registered " + resource);
    return found->second;
  }

  std::vector<std::string> Free(const std::string& resource, const Plugin& plugin) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::string> free;
    for (const SeenDevice& device : plugin.devices()) {
      if (device.healthy && !allocated_[resource].contains(device.id)) free.push_back(device.id);
    }
    return free;
  }

  Result<std::vector<std::string>> Preferred(Plugin* plugin, const std::vector<std::string>& free,
                                             std::size_t count) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
    v1beta1::PreferredAllocationRequest request;
    auto* container = request.add_container_requests();
    for (const std::string& id : free) container->add_available_device_ids(id);
    container->set_allocation_size(static_cast<int>(count));
    v1beta1::PreferredAllocationResponse response;
    const grpc::Status status = plugin->stub()->GetPreferredAllocation(&context, request, &response);
    if (!status.ok()) return Fail(StatusError("GetPreferredAllocation", status));
    std::vector<std::string> ids;
    if (response.container_responses_size() == 0) return ids;
    for (const std::string& id : response.container_responses(0).device_ids()) {
      if (std::find(free.begin(), free.end(), id) != free.end()) ids.push_back(id);
    }
    return ids;
  }

  Result<SeenAllocation> Call(const std::string& resource, Plugin* plugin,
                              const std::vector<std::string>& ids) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallLimit);
    v1beta1::AllocateRequest request;
    auto* container = request.add_container_requests();
    for (const std::string& id : ids) container->add_device_ids(id);
    v1beta1::AllocateResponse response;
    const grpc::Status status = plugin->stub()->Allocate(&context, request, &response);
    if (!status.ok()) return Fail(StatusError("Allocate of " + resource, status));
    if (response.container_responses_size() != 1) {
      return Fail(ErrorCode::kConflict, "Allocate of " + resource + ": no container response");
    }
    SeenAllocation seen = Convert(response.container_responses(0));
    seen.ids = ids;
    std::sort(seen.ids.begin(), seen.ids.end());
    const std::lock_guard<std::mutex> lock(mutex_);
    allocated_[resource].insert(ids.begin(), ids.end());
    return seen;
  }

  static SeenAllocation Convert(const v1beta1::ContainerAllocateResponse& response) {
    SeenAllocation seen;
    seen.envs = {response.envs().begin(), response.envs().end()};
    for (const auto& mount : response.mounts()) {
      seen.mounts.push_back({mount.container_path(), mount.host_path(), mount.read_only()});
    }
    for (const auto& device : response.devices()) {
      seen.devices.push_back({device.container_path(), device.host_path(), device.permissions()});
    }
    seen.annotations = {response.annotations().begin(), response.annotations().end()};
    for (const auto& device : response.cdi_devices()) seen.cdi_devices.push_back(device.name());
    return seen;
  }

  const std::string directory_;
  std::mt19937 random_;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Plugin>> plugins_;
  std::map<std::string, std::set<std::string>> allocated_;
  std::map<std::string, int> registrations_;
};

DeviceManager::DeviceManager(std::string directory) : impl_(std::make_unique<Impl>(std::move(directory))) {}
DeviceManager::~DeviceManager() {
  impl_->Stop();
}
Result<void> DeviceManager::Start() {
  return impl_->Start();
}
void DeviceManager::Stop() {
  impl_->Stop();
}
Result<std::vector<SeenDevice>> DeviceManager::Devices(const std::string& resource, std::size_t count,
                                                       Deadline deadline) {
  return impl_->Devices(resource, count, deadline);
}
std::vector<SeenDevice> DeviceManager::Present(const std::string& resource) const {
  return impl_->Present(resource);
}
int DeviceManager::Lists(const std::string& resource) const {
  return impl_->Lists(resource);
}
Result<SeenAllocation> DeviceManager::Allocate(const std::string& resource, std::size_t count) {
  return impl_->Allocate(resource, count);
}
void DeviceManager::Release(const std::string& resource, const std::vector<std::string>& ids) {
  impl_->Release(resource, ids);
}
Result<void> DeviceManager::PreStart(const std::string& resource, const std::vector<std::string>& ids) {
  return impl_->PreStart(resource, ids);
}
int DeviceManager::Registrations(const std::string& resource) const {
  return impl_->Registrations(resource);
}

}  // namespace railhead::testing
