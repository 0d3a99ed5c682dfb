#include "tests/support/ipam/support.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "netns/base/state_folder.h"
#include "netns/base/unique_fd.h"

namespace railhead::testing {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "test set-up: %s\n", what.c_str());
  std::abort();
}

}  // namespace

ScratchRoot::ScratchRoot() {
  std::error_code error;
  const bool memory = fs::is_directory("/dev/shm", error);
  path_ = (memory ? std::string("/dev/shm") : fs::temp_directory_path().string()) + "/railhead-ipam.XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) Die("cannot make " + path_);
}

ScratchRoot::~ScratchRoot() {
  std::error_code error;
  fs::remove_all(path_, error);
}

void ScratchRoot::Write(const std::string& path, const std::string& content) const {
  const fs::path whole = path_ + path;
  fs::create_directories(whole.parent_path());
  std::ofstream out(whole, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  if (!out) Die("cannot write " + whole.string());
}

IpAddress Ip(const std::string& text) {
  const auto address = IpAddress::Parse(text);
  if (!address) Die("no address: " + text);
  return *address;
}

IpPrefix Prefix(const std::string& text) {
  const auto prefix = IpPrefix::Parse(text);
  if (!prefix) Die("no prefix: " + text);
  return *prefix;
}

IpRange Range(const std::string& text) {
  const auto range = IpRange::Parse(text);
  if (!range) Die("no range: " + text);
  return *range;
}

ipam::AddressPool MakePool(const std::string& subnet, const std::vector<std::string>& ranges,
                           int reuse_delay_seconds, const std::vector<std::string>& exclusions) {
  ipam::RangeSpec spec;
  spec.subnet = Prefix(subnet);
  for (const std::string& text : ranges) spec.ranges.push_back(Range(text));
  for (const std::string& text : exclusions) spec.exclusions.push_back(Range(text));
  auto set = ipam::RangeSet::Make(spec);
  if (!set) Die(Describe(set.error()));
  return {spec.subnet.Network().ToString(), std::move(*set), std::chrono::seconds(reuse_delay_seconds)};
}

namespace {

std::string LockPath(const Root& root) {
  return root.Path("/var/lib/railhead/ipam/lock");
}

// Counts this process's descriptors of `path`.
int CountDescriptors(const std::string& path) {
  const fs::path wanted = fs::weakly_canonical(path);
  int count = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
    count += fs::read_symlink(entry.path(), error) == wanted ? 1 : 0;
  return count;
}

}  // namespace

void AwaitWaiters(const Root& root, int count) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (CountDescriptors(LockPath(root)) < count + 1) {
    if (std::chrono::steady_clock::now() > limit) Die("nobody waits for the store's lock");
    std::this_thread::yield();
  }
}

void WhileItWaits(const Root& root, const std::function<void()>& call,
                  const std::function<void()>& meanwhile) {
  auto lock = FileLock::Acquire(LockPath(root), std::chrono::seconds(30));
  if (!lock) Die(Describe(lock.error()));
  std::thread thread(call);
  AwaitWaiters(root, 1);
  meanwhile();
  { const FileLock released = std::move(*lock); }
  thread.join();
}

bool IsStoreLocked(const Root& root) {
  const UniqueFd fd(::open(LockPath(root).c_str(), O_RDWR | O_CLOEXEC));
  return fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
}

ipam::AddressOwner OwnerNumber(int i) {
  return {"net0", "container-" + std::to_string(i), "net1"};
}

ipam::ClockReading At(double seconds, const std::string& boot) {
  return {boot, static_cast<std::uint64_t>(seconds * 1000),
          1'700'000'000 + static_cast<std::int64_t>(seconds)};
}

}  // namespace railhead::testing
