// FakeKernel: a Kernel with state, for tests of everything above netns/.
//
//   FakeSysfs sysfs;
//   FakeKernel kernel(sysfs);
//   const auto vfs = kernel.AddPf({.address = "0000:43:00.0", .netdev = "pf0"}, {.count = 4});
//
//   kernel.AddNamespace("/run/netns/a");       // a real file
//   const std::string before = kernel.Snapshot();
//   ... kernel.HostNetns(), kernel.OpenRoute(ns), ...
//   EXPECT_EQ(kernel.Snapshot(), before);
//
// It behaves as Linux does where that matters (rules: fake_state.h). It updates the tree of `sysfs`: a VF in
// a pod has no net/ directory there, uverbs nodes come and go. It has no expectations of its own: tests check
// the state, Snapshot(), and Log() for messages.
//
// It counts every call of Kernel, RouteApi and RdmaApi. Fail*() makes calls fail. ParkAt() stops the calling
// thread within a call for good: to the kernel this looks like a killed process.
// Threads: one at a time (a parked thread does not count). `sysfs` must outlive it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netns/kernel.h"
#include "tests/support/fake_kernel/fake_state.h"
#include "tests/support/fake_kernel/sysfs_mirror.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {

struct FakeNicSpec {
  std::string address;  // "0000:43:00.0"
  std::string netdev;
  std::string rdma = {};                                             // "": none
  std::vector<GidType> roce = {GidType::kRoceV1, GidType::kRoceV2};  // of the PF and its VFs
  FakeDriver driver = {};
  int numa_node = 0;
  bool up = true;
  int mtu = 1500;
};

struct FakeVfSpec {
  int count = 0;
  std::string netdev = "{pf}v{n}";
  std::string rdma = {};  // "{pf}" and "{n}" are replaced
  std::string vendor_driver = {};
  bool up = false;
  int offset = 16;  // as FakeVfs::offset
  int mtu = 1500;
};

struct Announcement {
  std::string ns;
  std::string link;
  std::vector<IpAddress> addresses;
};

struct Probe {
  std::string ns;
  std::vector<ProbeTarget> targets;
  std::chrono::milliseconds budget{};
};

class FakeKernel final : public Kernel {
 public:
  // kPartly: the steps before the refused one stay (a move without the new name, the first of several
  // settings). For calls of one step it is the same as kRefused.
  enum class Fault { kRefused, kPartly };

  explicit FakeKernel(FakeSysfs& sysfs);
  ~FakeKernel() override = default;

  // Adds a PF with its VFs. Returns the VFs' addresses.
  std::vector<std::string> AddPf(const FakeNicSpec& pf, const FakeVfSpec& vfs = {});
  // Returns the path of a file that stands for the namespace. The file is made below sysfs' directory.
  std::string AddNamespace(const std::string& name);
  // Does what the kernel does: physical devices return to the host. The file is removed too.
  void RemoveNamespace(const std::string& path);
  void AddVeth(const std::string& ns, const std::string& name, const std::string& peer_ns,
               const std::string& peer);
  // On `lower`, a link of the same namespace.
  void AddVlan(const std::string& ns, const std::string& name, const std::string& lower);
  // `ns` is kHost or what AddNamespace() returned.
  void AddAddress(const std::string& ns, const std::string& link, const std::string& prefix);
  void AddDefaultRoute(const std::string& ns, const std::string& link, const std::string& gateway);
  void SetUp(const std::string& ns, const std::string& link, bool up);
  // Adds a host to the network of the PF `pf` (a BDF; "": of every link). It answers ARP and neighbour
  // solicitations, so it is a neighbour and a conflict.
  void AddForeignHost(const std::string& pf, const std::string& address, const std::string& mac);
  // Adds a host that answers every probe in the network of `pf`.
  void AddResponder(const std::string& pf, const std::string& mac);
  void SetHasProcesses(const std::string& ns, bool has);

  FakeState& state() { return state_; }
  void SetRdmaMode(RdmaNetnsMode mode) { state_.mode = mode; }
  // The kernel is of this release from now on: links say no more, and requests fail, as that kernel has them.
  void SetRelease(FakeRelease release);
  // Call it after changes made through state().
  void Sync() { mirror_.Sync(state_); }

  // From now on a PF resets a VF when it sets the VF's MAC. Until the VF is back, this many changes of its
  // MAC or link state fail with `error`.
  void ResetVfs(int refusals, int error) { vf_reset_ = {refusals, error}; }
  // For the handles: begins the reset, and the error of the next change of this function's link.
  void BeginReset(const std::string& bdf) {
    if (vf_reset_.refusals > 0) resetting_[bdf] = vf_reset_.refusals;
  }
  int RefusalOfReset(const std::string& bdf) {
    const auto reset = resetting_.find(bdf);
    if (reset == resetting_.end()) return 0;
    if (--reset->second == 0) resetting_.erase(reset);
    return vf_reset_.error;
  }

  // The whole state as text, without what comes and goes: interface indices, uverbs
  // numbers, RDMA device indices.
  [[nodiscard]] std::string Snapshot();

  // The nth call from now (1 is the next) fails with `error`.
  void FailCall(int nth, int error, Fault fault = Fault::kRefused);
  // Every call of that name ("SetVf") whose log line contains `text`.
  void FailEvery(const std::string& call, int error, const std::string& text = {});
  void StopFailing();
  // The nth call from now never returns; AwaitParked() returns when a thread has reached it.
  void ParkAt(int nth);
  // false: `done` became true first.
  bool AwaitParked(const std::function<bool()>& done);

  // Runs before each call does anything, with the call's name and object: "FindLink pf0".
  std::function<void(const std::string&)> before;

  [[nodiscard]] int calls() const { return calls_; }
  // The calls since the last Fail*() or ClearLog(), one per line.
  [[nodiscard]] std::string Log() const;
  void ClearLog() { log_.clear(); }
  [[nodiscard]] const std::vector<Announcement>& announcements() const { return announcements_; }
  [[nodiscard]] const std::vector<Probe>& probes() const { return probes_; }

  Result<NetNs> OpenNetns(const std::string& path) override;
  Result<NetNs> HostNetns() override;
  Result<std::unique_ptr<RouteApi>> OpenRoute(const NetNs& ns) override;
  Result<std::unique_ptr<RdmaApi>> OpenRdma(const NetNs& ns) override;
  Result<std::unique_ptr<DeviceApi>> OpenDevices(const NetNs& ns) override;
  Result<std::optional<std::vector<GidEntry>>> ReadGids(const NetNs& ns, const std::string& device) override;
  Result<void> Announce(const NetNs& ns, const Link& link, const std::vector<IpAddress>& addresses) override;
  // Does not wait: an answer is available at once or never.
  Result<std::vector<AddressConflict>> ProbeAddresses(const NetNs& ns,
                                                      const std::vector<ProbeTarget>& targets,
                                                      std::chrono::milliseconds budget) override;
  Result<std::vector<std::optional<std::string>>> ReadSysctls(const NetNs& ns,
                                                              const std::vector<std::string>& paths) override;
  Result<void> WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values) override;
  Result<bool> HasProcesses(const NetNs& ns) override;
  Result<void> RebindDriver(const std::string& bdf) override;
  Result<void> BindDriver(const std::string& bdf, const std::string& driver) override;
  Result<void> ResetFunction(const std::string& bdf) override;

  // For the handles: counts and logs a call. Returns the injected failure, if any.
  struct Injected {
    int error = 0;
    Fault fault = Fault::kRefused;
    explicit operator bool() const { return error != 0; }
    [[nodiscard]] bool Refused() const { return error != 0 && fault == Fault::kRefused; }
  };
  Injected Begin(const std::string& call, const std::string& what);
  // The namespace's name; nullopt when the namespace has ended.
  std::optional<std::string> NameOf(const NetNs& ns);
  // The end of every call that changes the state.
  Result<void> Finish(int error, const std::string& what);

 private:
  struct Every {
    int error = 0;
    std::string text;
  };
  void NewNamespace(const std::string& name, const std::string& path);

  struct VfReset {
    int refusals = 0;
    int error = 0;
  };
  VfReset vf_reset_;
  std::map<std::string, int> resetting_;  // by VF: refusals that are left

  FakeSysfs& sysfs_;
  FakeState state_;
  SysfsMirror mirror_;
  std::string host_path_;
  std::vector<UniqueFd> gone_;  // inode numbers of removed namespaces stay taken
  std::vector<Announcement> announcements_;
  std::vector<Probe> probes_;

  int calls_ = 0;
  int fail_at_ = 0;
  Injected injected_;
  std::map<std::string, Every> every_;
  std::vector<std::string> log_;

  // Parked threads share this and outlive the kernel.
  struct Parking {
    std::mutex mutex;
    std::condition_variable changed;
    bool parked = false;
  };
  int park_at_ = 0;
  std::shared_ptr<Parking> parking_;
};

// The handles (fake_route_api.cc, fake_rdma_api.cc, fake_devices.cc).
std::unique_ptr<RouteApi> MakeFakeRoute(FakeKernel& kernel, const std::string& ns);
std::unique_ptr<RdmaApi> MakeFakeRdma(FakeKernel& kernel, const std::string& ns);
std::unique_ptr<DeviceApi> MakeFakeDevices(FakeKernel& kernel, const std::string& ns);

}  // namespace railhead::testing
