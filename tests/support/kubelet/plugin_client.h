// PluginClient: kubelet's end of one device plugin's socket
// (pkg/kubelet/cm/devicemanager/plugin/v1beta1/client.go and endpoint.go).
//
// Ownership: owns connection and thread. Threads: thread-safe, except that the thread that made it calls
// Connect() and Run(), once each. `on_list` and `on_end` run on its own thread. Errors: gRPC's statuses as
// kConflict, with code and message in the text.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "netns/base/result.h"
#include "tests/support/kubelet/messages.h"

namespace railhead::testing {

class PluginClient {
 public:
  using Record = std::function<void(TraceEvent)>;

  PluginClient(std::string resource, std::string socket_path, Record record);
  PluginClient(const PluginClient&) = delete;
  PluginClient& operator=(const PluginClient&) = delete;
  ~PluginClient();

  // Dials, for 10 s at most, and asks for the plugin's options.
  grpc::Status Connect();
  // Opens ListAndWatch after `delay`. With `deaf` it reads no message.
  void Run(std::chrono::milliseconds delay, bool deaf, std::function<void(std::vector<SeenDevice>)> on_list,
           std::function<void()> on_end);
  // Cancels all calls in progress; later calls fail. Does not wait.
  void Cancel();
  // Waits for the end of the thread. Not from `on_list` or `on_end`.
  void Join();

  Result<std::vector<std::string>> Prefer(const std::vector<std::string>& available,
                                          const std::vector<std::string>& must_include, std::size_t size);
  Result<SeenAllocation> Allocate(const std::vector<std::string>& ids);
  Result<void> PreStart(const std::vector<std::string>& ids);

  [[nodiscard]] const std::string& resource() const { return resource_; }
  [[nodiscard]] const std::string& socket_path() const { return socket_path_; }
  [[nodiscard]] bool pre_start() const { return options_.pre_start_required(); }
  [[nodiscard]] bool preferred() const { return options_.get_preferred_allocation_available(); }

 private:
  // Makes a call with a context that Cancel() knows.
  grpc::Status Call(std::chrono::seconds limit,
                    const std::function<grpc::Status(grpc::ClientContext*)>& call);
  void Stream(bool deaf, const std::function<void(std::vector<SeenDevice>)>& on_list);
  void Note(const char* from, const char* call, nlohmann::json request, nlohmann::json response,
            const grpc::Status& status) const;
  bool Await(std::chrono::milliseconds delay) const;

  const std::string resource_;
  const std::string socket_path_;
  const Record record_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  v1beta1::DevicePluginOptions options_;
  std::thread thread_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::set<grpc::ClientContext*> contexts_;  // of the calls in progress
};

}  // namespace railhead::testing
