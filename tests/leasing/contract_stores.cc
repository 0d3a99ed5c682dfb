#include <csignal>
#include <mutex>

#include "deviceplugin/leasing/etcd_api.h"
#include "deviceplugin/leasing/etcd_store.h"
#include "tests/cni/process.h"
#include "tests/cni/temp_root.h"
#include "tests/leasing/certificates.h"
#include "tests/leasing/contract.h"
#include "tests/leasing/etcd_cluster.h"

namespace railhead::testing {
namespace {

// etcd is started once for all tests; each has a prefix of its own.
class EtcdService : public StoreService {
 public:
  EtcdService() : prefix_("/railhead/test" + std::to_string(++Shared().tests)) {}

  std::unique_ptr<ClusterStore> Client() override {
    EtcdConfig config = Shared().cluster.Config();
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

}  // namespace

std::vector<StoreMaker> StoresUnderTest() {
  (void)std::signal(SIGPIPE, SIG_IGN);
  return {{"Etcd", [] { return std::make_unique<EtcdService>(); }}};
}

}  // namespace railhead::testing
