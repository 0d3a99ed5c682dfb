#include "tests/support/daemon/reconciler_fixture.h"

#include <sys/file.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

namespace railhead::testing {
namespace fs = std::filesystem;

std::string ReconcilerFixture::AddTo(const std::string& name, Call call) {
  call.netns = MakePod(name);
  const auto added = Add(call);
  EXPECT_TRUE(added) << Describe(added.error());
  return call.netns;
}

reconcile::ReconcileReport ReconcilerFixture::Once() {
  return reconcile::Reconciler(sysfs_.root(), kernel_, reconcile::SinglePass()).Run();
}

std::string ReconcilerFixture::ListActions(const reconcile::ReconcileReport& report) {
  std::string text;
  for (const auto& action : report.actions) {
    text += action.what + " " + action.name + ": " + action.reason;
    if (action.error) text += "! " + Describe(*action.error);
    text += "\n";
  }
  return text;
}

std::string ReconcilerFixture::Did() {
  const auto report = Once();
  EXPECT_FALSE(report.Failed()) << ListActions(report);
  return ListActions(report);
}

bool ReconcilerFixture::KillPass(int nth, int passes, const reconcile::ReconcileOptions& options) {
  kernel_.ParkAt(nth);
  const auto done = std::make_shared<std::atomic<bool>>(false);
  // The thread may outlive the test, so it borrows only the kernel, like other parked threads.
  std::thread([this, done, passes, options, root = sysfs_.root()] {
    reconcile::Reconciler reconciler(root, kernel_, options);
    for (int pass = 0; pass < passes; ++pass) (void)reconciler.Run();
    *done = true;
  }).detach();
  const bool parked = kernel_.AwaitParked([&] { return done->load(); });
  // A killed process holds no locks, so this releases those of the parked thread.
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    const std::string target = fs::read_symlink(entry.path(), error);
    if (target.starts_with(sysfs_.directory()) && target.ends_with(".lock"))
      (void)::flock(std::stoi(entry.path().filename()), LOCK_UN);
  }
  return parked;
}

bool ReconcilerFixture::IsThere(const std::string& path) const {
  std::error_code error;
  return fs::symlink_status(Path(path), error).type() != fs::file_type::not_found;
}

void ReconcilerFixture::Remove(const std::string& path) const {
  fs::remove_all(Path(path));
}

std::string ReconcilerFixture::EntryOf(const Call& call) const {
  return "/run/railhead/attachments/" + call.container + "/" + call.network + "@" + call.ifname + ".json";
}

void ReconcilerFixture::ForgetEntry(const Call& call) const {
  Remove(EntryOf(call));
}

Call ReconcilerFixture::OfPod(const std::string& uid) const {
  Call call = AllRails();
  call.args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_UID=" + uid;
  return call;
}

void ReconcilerFixture::KubeletHas(const std::string& uid) const {
  fs::create_directories(Path("/var/lib/kubelet/pods/" + uid));
}

}  // namespace railhead::testing
