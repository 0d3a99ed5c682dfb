// A network configuration through ADD on a fake kernel, the journal's writer and reader, and DEL. Whatever
// the author of a network writes, the entry can be read, and DEL restores the node.
#include <memory>
#include <string>

#include "cni/plugin/plugin.h"
#include "cni/state/journal.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/fake_kernel/fake_kernel.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::fuzz {
namespace {

using testing::FakeKernel;
using testing::FakeSysfs;

class Node {
 public:
  Node() {
    vf_ = kernel_.AddPf({.address = "0000:43:00.0", .netdev = "pf0"}, {.count = 2, .netdev = "pf0v{n}"})[0];
    pod_ = kernel_.AddNamespace("pod");
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n");
    before_ = kernel_.Snapshot();
  }
  [[nodiscard]] const std::string& vf() const { return vf_; }

  void Attach(const std::string& config) {
    CniRequest request = Request("ADD", config);
    const auto added = plugin_.Add(request);
    const auto scan = Journal(sysfs_.root()).Scan();
    Require(scan.has_value() && scan->unreadable.empty(), "every entry of the journal can be read");
    Require(added.has_value() || (kernel_.Snapshot() == before_ && scan->entries.empty()),
            "a refused ADD changes nothing");
    request.command = "DEL";
    const auto deleted = plugin_.Del(request);
    Require(deleted.has_value(), "DEL succeeds");
    Require(Journal(sysfs_.root()).Scan()->entries.empty(), "DEL leaves no entry");
    RemoveRules();
    Require(kernel_.Snapshot() == before_, "the node is as it was");
  }

 private:
  // sysctls of the namespace itself stay with the namespace.
  void RemoveRules() { kernel_.state().Namespace(pod_)->sysctls = sysctls_; }

  CniRequest Request(const std::string& command, const std::string& config) const {
    CniRequest request;
    request.command = command;
    request.cni_version = "1.0.0";
    request.network = "net";
    request.container_id = "c1";
    request.ifname = "net1";
    request.netns = pod_;
    request.config = config;
    return request;
  }

  FakeSysfs sysfs_{ScratchDirectory()};
  FakeKernel kernel_{sysfs_};
  attachment::RailheadPlugin plugin_{sysfs_.root(), kernel_};
  std::string vf_;
  std::string pod_;
  std::string before_;
  std::map<std::string, std::string> sysctls_;
};

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Node;
  static Node* const node = [] {
    std::filesystem::create_directories(railhead::fuzz::ScratchDirectory());
    return new Node;  // NOLINT(cppcoreguidelines-owning-memory): as long as the fuzzer
  }();
  // The inputs are fields. The fuzzer appends the device and the time limits, and the last value of a name
  // counts.
  const std::string fields = railhead::fuzz::TextOf(data, size);
  node->Attach(R"({"cniVersion":"1.0.0","name":"net","type":"railhead",)" + fields +
               (fields.empty() ? "" : ",") + R"("deviceID":")" + node->vf() +
               R"(","linkTimeoutSeconds":0,"previousDelTimeoutSeconds":0,"conflictProbeMs":0})");
  return 0;
}
