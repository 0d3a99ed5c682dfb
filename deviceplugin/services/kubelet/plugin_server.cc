#include "deviceplugin/services/kubelet/plugin_server.h"

#include <grpc/grpc.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "cni/state/journal.h"
#include "deviceplugin/node/resources/preferred.h"
#include "deviceplugin/services/kubelet/handlers.h"
#include "deviceplugin/services/kubelet/proto/deviceplugin_v1beta1.grpc.pb.h"
#include "netns/base/files.h"
#include "netns/base/mutex.h"

namespace railhead::kubelet {
namespace {

constexpr std::chrono::seconds kShutdownLimit{3};
// kubelet's requests name devices of one container: far below this.
constexpr int kMaxRequestBytes = 256 * 1024;
// Concurrent calls on a connection, for which gRPC has no limit. Each can hold kMaxRequestBytes of a request
// that never ends. A kubelet has one lasting stream and few other calls; further calls wait on its side. A
// resource quota is not an alternative. To keep it, gRPC closes new connections, kubelet's among them.
constexpr int kMostCalls = 64;

grpc::StatusCode StatusCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kMalformed:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::kConflict:
    case ErrorCode::kBusy:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::kExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::kUnsupported:
      return grpc::StatusCode::UNIMPLEMENTED;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

grpc::Status StatusOf(const Error& error) {
  return {StatusCodeOf(error.code), Describe(error)};
}

v1beta1::ListAndWatchResponse ListOf(const PluginServer::View& view) {
  const resources::ResourcePool& pool = *view.pool;
  v1beta1::ListAndWatchResponse response;
  for (const resources::PoolMember& member : pool.members) {
    v1beta1::Device* device = response.add_devices();
    device->set_id(member.function.id);
    const bool unhealthy = view.unhealthy && view.unhealthy->contains(member.function.id);
    device->set_health(unhealthy ? "Unhealthy" : "Healthy");
    if (member.function.numa_node && !pool.spec.exclude_topology) {
      device->mutable_topology()->add_nodes()->set_id(*member.function.numa_node);
    }
  }
  for (const std::string& id : view.lost) {
    v1beta1::Device* device = response.add_devices();
    device->set_id(id);
    device->set_health("Unhealthy");
  }
  return response;
}

// What ListAndWatch sends: made once for all streams, which compare and share it.
struct DeviceList {
  explicit DeviceList(const PluginServer::View& view)
      : response(ListOf(view)), bytes(response.SerializeAsString()) {}

  const v1beta1::ListAndWatchResponse response;
  const std::string bytes;
};

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const grpc::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

}  // namespace

class PluginServer::Impl final : public v1beta1::DevicePlugin::CallbackService {
 public:
  Impl(std::string socket_path, const View& view, Wiring wiring)
      : socket_path_(std::move(socket_path)),
        resource_(view.pool->spec.resource),
        pre_start_(NeedsPreStart(*view.pool)),
        wiring_(std::move(wiring)),
        pool_(view.pool),
        list_(std::make_shared<const DeviceList>(view)) {}

  Result<void> Serve() {
    const std::string directory = socket_path_.substr(0, socket_path_.rfind('/'));
    if (!Exists(directory)) {
      return Fail(ErrorCode::kNotFound,
                  "serving " + resource_ + ": the directory " + directory + " of its socket does not exist",
                  "kubelet makes it when it starts; if kubelet's --root-dir is another, give --kubelet-dir");
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_path_, grpc::InsecureServerCredentials());
    builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCalls);
    builder.AddChannelArgument(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (!server_) {
      return Fail(ErrorCode::kIo,
                  "serving " + resource_ + " on " + socket_path_ + ": gRPC cannot listen there",
                  "check that the directory is writable; GRPC_VERBOSITY=error prints gRPC's reason");
    }
    return {};
  }

  void Stop() {
    if (!server_) return;
    EndStreams();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownLimit);
    server_->Wait();
    server_.reset();
  }

  void Update(const View& view) {
    auto list = std::make_shared<const DeviceList>(view);
    const MutexLock lock(mutex_);
    pool_ = view.pool;
    list_ = std::move(list);
    for (const auto& [stream, progress] : streams_) SendIfNew(stream);
  }

  bool NewestStreamIsOpen() const {
    const MutexLock lock(mutex_);
    return newest_ != nullptr;
  }
  int StreamsSoFar() const {
    const MutexLock lock(mutex_);
    return streams_so_far_;
  }

  const std::string& socket_path() const { return socket_path_; }
  bool pre_start() const { return pre_start_; }

  // --- the service ---

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context,
                                                   const v1beta1::Empty* /*request*/,
                                                   v1beta1::DevicePluginOptions* response) override {
    response->set_pre_start_required(pre_start_);
    response->set_get_preferred_allocation_available(true);
    return Answer(context, grpc::Status::OK);
  }

  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(
      grpc::CallbackServerContext* /*context*/, const v1beta1::Empty* /*request*/) override {
    auto* stream = new Stream(this);  // deletes itself in OnDone
    {
      const MutexLock lock(mutex_);
      streams_.emplace(stream, Progress());
      ++streams_so_far_;
      newest_ = stream;
      if (stopping_) {
        FinishOnce(stream, Stopping());
      } else {
        SendIfNew(stream);
      }
    }
    ++wiring_.activity->streams;
    wiring_.streams_changed();
    return stream;
  }

  grpc::ServerUnaryReactor* GetPreferredAllocation(grpc::CallbackServerContext* context,
                                                   const v1beta1::PreferredAllocationRequest* request,
                                                   v1beta1::PreferredAllocationResponse* response) override {
    return Count(context, &wiring_.activity->preferred, [&] {
      const auto current = pool();
      return AnswerPreferred(*current, Hints(*current), *request, response);
    });
  }

  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) override {
    return Count(context, &wiring_.activity->allocate, [&] {
      return AnswerAllocate(*pool(), wiring_.allocator.get(), *request, ReportOf("Allocate"), response);
    });
  }

  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext* context,
                                              const v1beta1::PreStartContainerRequest* request,
                                              v1beta1::PreStartContainerResponse* /*response*/) override {
    return Count(context, &wiring_.activity->pre_start, [&] {
      return AnswerPreStart(wiring_.root, *pool(), *request, ReportOf("PreStartContainer"));
    });
  }

 private:
  // One ListAndWatch call. It has no lock of its own: that of the server guards its Progress, too.
  class Stream final : public grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse> {
   public:
    explicit Stream(Impl* owner) : owner_(owner) {}

    void OnWriteDone(bool ok) override { owner_->OnWritten(this, ok); }
    void OnCancel() override { owner_->OnCancelled(this); }
    void OnDone() override {
      owner_->Forget(this);
      delete this;
    }

   private:
    Impl* owner_;
  };

  // How far a stream is. At most one write is in progress. If the list changes during a write, only the
  // newest list is sent after it, and only if it differs: kubelet processes every list.
  struct Progress {
    std::shared_ptr<const DeviceList> sent;  // also what the write in progress reads
    bool writing = false;
    bool finished = false;
  };

  // SendIfNew() and FinishOnce() hold the lock across StartWrite and Finish. gRPC lets neither wait, and runs
  // OnWriteDone, OnCancel and OnDone on threads of its own, never inside these two
  // (ServerCallbackWriterImpl in grpcpp/impl/codegen/server_callback_handlers.h).
  void SendIfNew(Stream* stream) RH_REQUIRES(mutex_) {
    Progress& progress = streams_.at(stream);
    if (progress.writing || progress.finished) return;
    if (progress.sent && progress.sent->bytes == list_->bytes) return;
    progress.sent = list_;
    progress.writing = true;
    wiring_.activity->list_updates.Add();
    stream->StartWrite(&progress.sent->response);
  }
  void FinishOnce(Stream* stream, const grpc::Status& status) RH_REQUIRES(mutex_) {
    if (std::exchange(streams_.at(stream).finished, true)) return;
    stream->Finish(status);
  }
  static grpc::Status Stopping() { return {grpc::StatusCode::UNAVAILABLE, "railheadd is stopping"}; }

  void OnWritten(Stream* stream, bool ok) {
    const MutexLock lock(mutex_);
    streams_.at(stream).writing = false;
    if (ok) {
      SendIfNew(stream);
    } else {
      FinishOnce(stream, grpc::Status::CANCELLED);
    }
  }
  void OnCancelled(Stream* stream) {
    const MutexLock lock(mutex_);
    FinishOnce(stream, grpc::Status::CANCELLED);
  }
  void Forget(Stream* stream) {
    {
      const MutexLock lock(mutex_);
      streams_.erase(stream);
      if (newest_ == stream) newest_ = nullptr;
    }
    --wiring_.activity->streams;
    wiring_.streams_changed();
  }
  void EndStreams() {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [stream, progress] : streams_) FinishOnce(stream, Stopping());
  }

  std::shared_ptr<const resources::ResourcePool> pool() const {
    const MutexLock lock(mutex_);
    return pool_;
  }

  // kubelet may count a device as free before the DEL of its last pod is over.
  resources::PreferHints Hints(const resources::ResourcePool& pool) const {
    resources::PreferHints hints;
    if (wiring_.paths) hints.paths = wiring_.paths(pool);
    hints.still_attached = Journal(wiring_.root).HeldDevices();
    return hints;
  }

  template <typename Work>
  static grpc::ServerUnaryReactor* Count(grpc::CallbackServerContext* context, CallActivity* calls,
                                         const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    const Result<void> done = work();
    calls->duration.Observe(std::chrono::steady_clock::now() - begin);
    (done ? calls->answered : calls->refused).Add();
    return Answer(context, done ? grpc::Status::OK : StatusOf(done.error()));
  }

  ContainerReport ReportOf(const char* method) const {
    return [this, method](ContainerCall call) {
      std::ranges::sort(call.device_ids);
      wiring_.activity->spec_rewrites.Add(call.rewritten.size());
      wiring_.activity->spec_read_timeouts.Add(call.cdi_unread ? 1 : 0);
      wiring_.report({method, resource_, std::move(call.device_ids), std::move(call.error),
                      std::move(call.rewritten), call.cdi_unread});
    };
  }

  const std::string socket_path_;
  const std::string resource_;
  const bool pre_start_;
  const Wiring wiring_;

  mutable Mutex mutex_;
  std::shared_ptr<const resources::ResourcePool> pool_ RH_GUARDED_BY(mutex_);
  std::shared_ptr<const DeviceList> list_ RH_GUARDED_BY(mutex_);
  std::map<Stream*, Progress> streams_ RH_GUARDED_BY(mutex_);
  Stream* newest_ RH_GUARDED_BY(mutex_) = nullptr;  // nullptr: has ended
  int streams_so_far_ RH_GUARDED_BY(mutex_) = 0;
  bool stopping_ RH_GUARDED_BY(mutex_) = false;

  std::unique_ptr<grpc::Server> server_;
};

Result<std::unique_ptr<PluginServer>> PluginServer::Start(const std::string& socket_path, const View& view,
                                                          Wiring wiring) {
  auto impl = std::make_unique<Impl>(socket_path, view, std::move(wiring));
  RH_TRY(impl->Serve());
  return std::unique_ptr<PluginServer>(new PluginServer(std::move(impl)));
}

PluginServer::PluginServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PluginServer::~PluginServer() {
  impl_->Stop();
}

void PluginServer::Update(const View& view) {
  impl_->Update(view);
}

bool PluginServer::NewestStreamIsOpen() const {
  return impl_->NewestStreamIsOpen();
}
int PluginServer::StreamsSoFar() const {
  return impl_->StreamsSoFar();
}
const std::string& PluginServer::socket_path() const {
  return impl_->socket_path();
}
bool NeedsPreStart(const resources::ResourcePool& pool) {
  return pool.spec.nccl_config == NcclConfigPolicy::kRequired || HasCdiNames(pool);
}
bool PluginServer::PreStartRequired() const {
  return impl_->pre_start();
}

}  // namespace railhead::kubelet
