#include <csignal>

#include "deviceplugin/services/address_leasing/etcd_store.h"
#include "deviceplugin/services/address_leasing/kube_store.h"
#include "tests/support/cluster_store/certificates.h"
#include "tests/support/cluster_store/etcd_cluster.h"
#include "tests/support/cluster_store/kube_server.h"
#include "tests/support/lease/memory_store.h"
#include "tests/support/temp_root.h"
#include "tests/unit/deviceplugin/services/address_leasing/contract.h"

namespace railhead::testing {
namespace {

// etcd is started once for all tests; each has a prefix of its own.
class EtcdService : public StoreService {
 public:
  EtcdService() : prefix_("/railhead/test" + std::to_string(++Shared().tests)) {}

  std::unique_ptr<ipam::ClusterStore> Client() override {
    address_leasing::EtcdConfig config = Shared().cluster.Config();
    config.prefix = prefix_;
    config.timeout = std::chrono::seconds(60);
    return MakeEtcdStore(Root(), config);
  }

 private:
  struct Etcd {
    TempRoot files;
    Certificates certificates;
    EtcdCluster cluster{files.directory(), {1, true, true, certificates.directory(), {}, {}}};
    int tests = 0;
  };
  static Etcd& Shared() {
    static Etcd etcd;
    return etcd;
  }
  const std::string prefix_;
};

// The API server is started once, too, and cleared for each test.
template <KubeServer::Kind kind>
class KubeService : public StoreService {
 public:
  KubeService() { Shared().Clear(); }
  std::unique_ptr<ipam::ClusterStore> Client() override {
    return address_leasing::MakeKubeStore(Shared().Access(), std::chrono::seconds(60));
  }

 private:
  static KubeServer& Shared() {
    static KubeServer server(kind);
    return server;
  }
};

// The one that leasing's own tests use: for one thread, and it takes any name.
class MemoryService : public StoreService {
 public:
  std::unique_ptr<ipam::ClusterStore> Client() override { return std::make_unique<MemoryStore>(cluster_); }

 private:
  MemoryCluster cluster_;
};

}  // namespace

std::vector<StoreMaker> StoresUnderTest() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  using StandIn = KubeService<KubeServer::Kind::kStandIn>;
  using Real = KubeService<KubeServer::Kind::kReal>;
  std::vector<StoreMaker> makers = {{"Memory", false, [] { return std::make_unique<MemoryService>(); }},
                                    {"Etcd", true, [] { return std::make_unique<EtcdService>(); }},
                                    {"KubeStandIn", true, [] { return std::make_unique<StandIn>(); }}};
  if (!KubeServer::RealServer().empty()) {
    makers.push_back({"KubeApiServer", true, [] { return std::make_unique<Real>(); }});
  }
  return makers;
}

}  // namespace railhead::testing
