#include "tests/support/kubelet/device_manager.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "netns/base/files.h"
#include "tests/support/kubelet/device_manager_impl.h"

namespace railhead::testing {
namespace {

constexpr std::chrono::minutes kStopGracePeriod{5};

// v1helper.IsExtendedResourceName, limited to the mistakes that a device plugin can make.
bool IsExtendedResourceName(const std::string& name) {
  const auto slash = name.find('/');
  return slash != std::string::npos && slash > 0 && slash + 1 < name.size() &&
         name.find('/', slash + 1) == std::string::npos && name.rfind("requests.", 0) != 0 &&
         name.substr(0, slash).find("kubernetes.io") == std::string::npos;
}

}  // namespace

DeviceManager::Impl::Impl(std::string directory, KubeletOptions options)
    : directory_(std::move(directory)), options_(std::move(options)), random_(options_.seed) {}

Result<void> DeviceManager::Impl::Start() {
  const std::lock_guard<std::mutex> life(life_mutex_);
  if (server_) return {};  // two callers wanted a restart at once
  RH_TRY(ReadState());
  RH_TRY(CleanDirectory());
  int number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = false;
    number = life_;
  }
  // gRPC removes the path of its socket some time after its end, even if another server uses the path. So it
  // gets a path of its own.
  const std::string path = directory_ + "/kubelet.sock";
  const std::string own = path + "." + std::to_string(number);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + own, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  if (!server_) return Fail(ErrorCode::kIo, "serving " + own);
  if (::link(own.c_str(), path.c_str()) != 0) return FailSys(errno, "making " + path);
  RH_TRY(RemoveFile(own));
  Record("KubeletSocketCreated");
  return {};
}

// The memory of a kubelet that has just started.
Result<void> DeviceManager::Impl::ReadState() {
  auto data = RH_TRY(ReadCheckpointFile(directory_));
  const std::lock_guard<std::mutex> lock(mutex_);
  ++life_;
  resources_.clear();
  clients_.clear();
  pods_.clear();
  if (data) {
    pods_ = std::move(data->pods);
    for (const auto& [resource, ids] : data->registered) {
      Resource& known = resources_[resource];
      known.listed = true;
      known.stopped = options_.now();
    }
  }
  RecountAllocated();
  return {};
}

Result<void> DeviceManager::Impl::CleanDirectory() const {
  RH_TRY(WriteInPlace(directory_ + "/DEPRECATION", ""));
  const auto names = RH_TRY(ListDirectory(directory_));
  if (!names) return Fail(ErrorCode::kNotFound, directory_ + " does not exist");
  for (const std::string& name : *names) {
    struct stat status {};
    const std::string path = directory_ + "/" + name;
    // kubelet does not have the stand-in's control socket.
    if (name == "control.sock" || ::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    RH_TRY(RemoveFile(path));
    if (name != "kubelet.sock") Record("SocketRemoved");
  }
  return {};
}

void DeviceManager::Impl::Stop(bool leave_socket) {
  const std::lock_guard<std::mutex> life(life_mutex_);
  std::vector<Client> everyone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    ++life_;
    everyone.swap(everyone_);
    clients_.clear();
  }
  Record("KubeletStop");
  for (const Client& client : everyone) client->Cancel();
  if (!leave_socket) (void)RemoveFile(directory_ + "/kubelet.sock");
  if (server_) server_->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  server_.reset();
  for (const Client& client : everyone) client->Join();
  const std::lock_guard<std::mutex> lock(mutex_);
  resources_.clear();
  changed_.notify_all();
}

grpc::Status DeviceManager::Impl::Register(grpc::ServerContext* /*context*/,
                                           const v1beta1::RegisterRequest* request,
                                           v1beta1::Empty* /*response*/) {
  const std::string& resource = request->resource_name();
  At(Step::kRegisterCalled, resource);
  grpc::Status status;
  const std::string refusal = options_.refuse ? options_.refuse(resource) : "";
  if (!refusal.empty()) {
    status = {grpc::StatusCode::UNKNOWN, refusal};
  } else if (request->version() != "v1beta1") {
    status = {grpc::StatusCode::UNKNOWN,
              "requested API version \"" + request->version() + "\" is not supported by kubelet"};
  } else if (!IsExtendedResourceName(resource)) {
    status = {grpc::StatusCode::UNKNOWN,
              "the ResourceName \"" + resource + "\" is not a valid extended resource name"};
  } else {
    status = ConnectClient(
        std::make_shared<PluginClient>(resource, directory_ + "/" + request->endpoint(), options_.record));
  }
  if (options_.record) {
    options_.record({"plugin", "Register", resource, 1, ToJson(*request),
                     status.ok() ? nlohmann::json::object() : nlohmann::json(), TraceErrorOf(status)});
  }
  At(Step::kRegisterAnswered, resource);
  return status;
}

grpc::Status DeviceManager::Impl::ConnectClient(const Client& client) {
  const std::string& resource = client->resource();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return grpc::Status::CANCELLED;
    clients_[resource] = client;
    everyone_.push_back(client);
  }
  grpc::Status status = client->Connect();
  if (status.ok()) At(Step::kDialledBack, resource);
  if (options_.register_delay.count() > 0) std::this_thread::sleep_for(options_.register_delay);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return grpc::Status::CANCELLED;
  if (!status.ok()) {
    clients_.erase(resource);
    return status;
  }
  Resource& known = resources_[resource];
  known.endpoint = client;
  known.stopped.reset();
  known.lists = 0;
  ++registrations_[resource];
  streams_[resource].insert(client->socket_path());
  client->Run(
      options_.list_delay, options_.deaf,
      [this, resource](const std::vector<SeenDevice>& devices) { ListTaken(resource, devices); },
      [this, raw = client.get()] { StreamEnded(raw); });
  return grpc::Status::OK;
}

// genericDeviceUpdateCallback goes by the resource's name, whichever client sent the list.
void DeviceManager::Impl::ListTaken(const std::string& resource, const std::vector<SeenDevice>& devices) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    Resource& known = resources_[resource];
    known.all.clear();
    known.healthy.clear();
    known.unhealthy.clear();
    known.listed = true;
    ++known.lists;
    for (const SeenDevice& device : devices) {
      known.all[device.id] = device;
      (device.healthy ? known.healthy : known.unhealthy).insert(device.id);
    }
    WriteState();
    changed_.notify_all();
  }
  At(Step::kListTaken, resource);
}

// The end of runClient: it disconnects the plugin that has the name now.
void DeviceManager::Impl::StreamEnded(PluginClient* client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& streams = streams_[client->resource()];
  streams.erase(streams.find(client->socket_path()));
  changed_.notify_all();
  const auto found = clients_.find(client->resource());
  if (stopped_ || found == clients_.end()) return;
  if (options_.repaired_handover && found->second.get() != client) return;
  Disconnect(Client(found->second));
}

void DeviceManager::Impl::Disconnect(const Client& client) {
  ++drops_[client->resource()];
  clients_.erase(client->resource());
  client->Cancel();
  const auto found = resources_.find(client->resource());
  if (found == resources_.end()) return;
  Resource& known = found->second;
  known.unhealthy.insert(known.healthy.begin(), known.healthy.end());
  known.healthy.clear();
  known.stopped = options_.now();
}

Result<std::vector<SeenDevice>> DeviceManager::Impl::Devices(const std::string& resource, std::size_t count,
                                                             Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto healthy = [&] {
    const auto found = resources_.find(resource);
    return found == resources_.end() ? std::size_t{0} : found->second.healthy.size();
  };
  if (!changed_.wait_until(lock, deadline, [&] { return healthy() >= count; })) {
    return Fail(ErrorCode::kTimeout, "waiting for " + std::to_string(count) + " healthy devices of " +
                                         resource + ": there are " + std::to_string(healthy()));
  }
  lock.unlock();
  return Present(resource);
}

std::vector<SeenDevice> DeviceManager::Impl::Present(const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<SeenDevice> devices;
  const auto found = resources_.find(resource);
  if (found == resources_.end()) return devices;
  devices.reserve(found->second.all.size());
  for (const auto& [id, device] : found->second.all) {
    devices.push_back(device);
    devices.back().healthy = found->second.healthy.contains(id);
  }
  return devices;
}

int DeviceManager::Impl::Lists(const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = resources_.find(resource);
  return found == resources_.end() ? 0 : found->second.lists;
}

int DeviceManager::Impl::Registrations(const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = registrations_.find(resource);
  return found == registrations_.end() ? 0 : found->second;
}

int DeviceManager::Impl::Drops(const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = drops_.find(resource);
  return found == drops_.end() ? 0 : found->second;
}

int DeviceManager::Impl::OpenStreams(const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = streams_.find(resource);
  return found == streams_.end() ? 0 : static_cast<int>(found->second.size());
}

std::string DeviceManager::Impl::OnlyServer(const std::string& resource) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto plugin = clients_.find(resource);
  const auto streams = streams_.find(resource);
  if (plugin == clients_.end() || streams == streams_.end() || streams->second.empty()) return "";
  const std::string& socket = plugin->second->socket_path();
  return streams->second.count(socket) == streams->second.size() ? socket : "";
}

// GetCapacity, which also forgets a resource that was without a plugin for too long.
std::optional<Capacity> DeviceManager::Impl::NodeStatus(const std::string& resource) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = resources_.find(resource);
  if (found == resources_.end() || !found->second.listed) return std::nullopt;
  const Resource& known = found->second;
  if (known.stopped && options_.now() - *known.stopped > kStopGracePeriod) {
    resources_.erase(found);
    WriteState();
    return std::nullopt;
  }
  return Capacity{known.healthy.size() + known.unhealthy.size(), known.healthy.size()};
}

void DeviceManager::Impl::WriteState() {
  CheckpointData data;
  data.pods = pods_;
  for (const auto& [resource, known] : resources_) {
    if (known.listed) data.registered[resource] = {known.healthy.begin(), known.healthy.end()};
  }
  // Like kubelet, it ignores an error: the next write tries again.
  (void)WriteCheckpoint(directory_, data);
}

void DeviceManager::Impl::At(Step step, const std::string& resource) const {
  if (options_.at) options_.at(step, resource);
}

void DeviceManager::Impl::Record(const char* call) const {
  if (options_.record) options_.record({"kubelet", call, "", 1, nullptr, nullptr, std::nullopt});
}

DeviceManager::DeviceManager(std::string directory, KubeletOptions options)
    : impl_(std::make_unique<Impl>(std::move(directory), std::move(options))) {}
DeviceManager::~DeviceManager() {
  impl_->Stop(false);
}
Result<void> DeviceManager::Start() {
  return impl_->Start();
}
void DeviceManager::Stop() {
  impl_->Stop(false);
}
void DeviceManager::Kill() {
  impl_->Stop(true);
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
std::optional<Capacity> DeviceManager::NodeStatus(const std::string& resource) {
  return impl_->NodeStatus(resource);
}
int DeviceManager::Registrations(const std::string& resource) const {
  return impl_->Registrations(resource);
}
int DeviceManager::Drops(const std::string& resource) const {
  return impl_->Drops(resource);
}
int DeviceManager::OpenStreams(const std::string& resource) const {
  return impl_->OpenStreams(resource);
}
std::string DeviceManager::OnlyServer(const std::string& resource) const {
  return impl_->OnlyServer(resource);
}

}  // namespace railhead::testing
