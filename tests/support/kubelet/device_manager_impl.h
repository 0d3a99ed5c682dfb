// The inside of DeviceManager, in two files: device_manager.cc (plugins and their devices) and
// admission.cc (pods). Names follow kubelet's manager.go and plugin/v1beta1/handler.go.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>

#include "tests/support/kubelet/checkpoint_file.h"
#include "tests/support/kubelet/device_manager.h"
#include "tests/support/kubelet/plugin_client.h"

namespace railhead::testing {

class DeviceManager::Impl final : public v1beta1::Registration::Service {
 public:
  using Client = std::shared_ptr<PluginClient>;

  Impl(std::string directory, KubeletOptions options);

  Result<void> Start();
  void Stop(bool leave_socket);

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* response) override;

  Result<std::vector<SeenDevice>> Devices(const std::string& resource, std::size_t count, Deadline deadline);
  std::vector<SeenDevice> Present(const std::string& resource) const;
  int Lists(const std::string& resource) const;
  int Registrations(const std::string& resource) const;
  int Drops(const std::string& resource) const;
  int OpenStreams(const std::string& resource) const;
  std::string OnlyServer(const std::string& resource) const;
  std::optional<Capacity> NodeStatus(const std::string& resource);

  [[nodiscard]] std::optional<std::string> DirectoryOfPod(const std::string& pod_uid) const;
  Result<Allocations> Admit(const std::string& pod_uid, const std::vector<PodContainer>& containers);
  void Say(const TraceEvent& event);
  Result<SeenAllocation> Allocate(const std::string& resource, std::size_t count);
  Result<void> PreStart(const std::string& resource, const std::vector<std::string>& ids);
  Result<void> PreStartPod(const std::string& pod_uid, const std::string& container);
  void Release(const std::string& resource, const std::vector<std::string>& ids);
  void RemovePod(const std::string& pod_uid);
  std::map<std::pair<std::string, std::string>, std::set<std::string>> Allocated(
      const std::string& resource) const;

 private:
  using Ids = std::set<std::string>;

  // healthyDevices, unhealthyDevices, allDevices and endpoints of one resource.
  struct Resource {
    std::map<std::string, SeenDevice> all;
    Ids healthy;
    Ids unhealthy;
    bool listed = false;  // admission calls this "registered"
    Client endpoint;      // nullptr: known from the checkpoint only
    std::optional<std::chrono::steady_clock::time_point> stopped;
    int lists = 0;
  };

  // One (container, resource) that is being admitted.
  struct Request {
    std::string pod_uid;
    std::string container;
    std::string resource;
    std::size_t count;
    int life;  // the number of kubelet's life
  };

  [[nodiscard]] Result<void> ReadState();
  [[nodiscard]] Result<void> CleanDirectory() const;
  grpc::Status ConnectClient(const Client& client);
  void ListTaken(const std::string& resource, const std::vector<SeenDevice>& devices);
  void StreamEnded(PluginClient* client);
  void Disconnect(const Client& client);  // locked
  void WriteState();                      // locked
  void At(Step step, const std::string& resource) const;
  void Record(const char* call) const;

  Result<void> AdmitContainer(const std::string& pod_uid, const PodContainer& container, int life,
                              std::map<std::string, Ids>* reusable,
                              std::map<std::string, SeenAllocation>* given);
  Result<Ids> DevicesToAllocate(const Request& request, const Ids& reusable);
  Result<Ids> Choose(const Request& request, const Ids& reusable, std::unique_lock<std::mutex>* lock);
  Result<Ids> Prefer(const Request& request, const Ids& available, const Ids& must_include,
                     std::unique_lock<std::mutex>* lock);
  Ids Aligned(const std::string& resource, const Ids& available) const;               // locked
  void Remember(const Request& request, const Ids& ids, const SeenAllocation& seen);  // locked
  const PodDevicesEntry* EntryOf(const Request& request) const;                       // locked
  Result<Client> Endpoint(const std::string& resource) const;                         // locked
  void RecountAllocated();                                                            // locked
  std::vector<std::string> Shuffled(const Ids& ids);                                  // locked
  std::vector<std::string> Shuffled(std::vector<std::string> ids);

  const std::string directory_;
  const KubeletOptions options_;
  std::unique_ptr<grpc::Server> server_;

  std::mutex life_mutex_;  // for Start, Stop and work between lives; locked before mutex_
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937 random_;
  bool stopped_ = true;
  int life_ = 0;
  int pods_so_far_ = 0;
  std::vector<Client> everyone_;           // of this life: their threads must be waited for
  std::map<std::string, Client> clients_;  // handler.go's
  std::map<std::string, Resource> resources_;
  std::map<std::string, int> registrations_;
  std::map<std::string, int> drops_;
  std::map<std::string, std::multiset<std::string>> streams_;  // their sockets
  std::vector<PodDevicesEntry> pods_;
  std::map<std::string, Ids> allocated_;  // including devices of a pod that is being admitted
};

}  // namespace railhead::testing
