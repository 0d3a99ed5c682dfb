#include "tests/system/power/recovery.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>

#include "cni/protocol/delegate.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/root.h"
#include "netns/base/unique_fd.h"
#include "tests/support/eventually.h"

namespace railhead::testing {
namespace {

// While it exists the image is mounted.
class Mounted {
 public:
  static Result<Mounted> Mount(const std::string& device, const std::string& directory) {
    if (::mount(device.c_str(), directory.c_str(), "ext4", 0, nullptr) != 0)
      return FailSys(errno, "mounting " + device + " at " + directory);
    return Mounted(directory);
  }
  Mounted(Mounted&& other) noexcept : directory_(std::move(other.directory_)) { other.directory_.clear(); }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  Mounted& operator=(Mounted&&) = delete;
  ~Mounted() {
    if (directory_.empty()) return;
    // Anything that still has a file open keeps it busy; the next image could not be mounted then.
    (void)Eventually([&] { return ::umount(directory_.c_str()) == 0 || errno != EBUSY; });
  }

 private:
  explicit Mounted(std::string directory) : directory_(std::move(directory)) {}
  std::string directory_;
};

Result<void> WriteDevice(const std::string& path, const std::string& image) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return FailSys(errno, "opening " + path);
  for (std::size_t at = 0; at < image.size();) {
    const ssize_t n = ::pwrite(fd.get(), image.data() + at, image.size() - at, static_cast<off_t>(at));
    if (n < 0) return FailSys(errno, "writing " + path);
    at += static_cast<std::size_t>(n);
  }
  return {};
}

// The addresses that each container must hold; empty: none.
using Holdings = std::map<std::string, std::set<std::string>>;

Holdings After(const std::vector<Operation>& operations, std::size_t count) {
  Holdings holdings;
  for (std::size_t i = 0; i < count; ++i) {
    const Operation& operation = operations[i];
    auto& held = holdings[operation.container];
    held.clear();
    if (operation.add) held.insert(operation.addresses.begin(), operation.addresses.end());
  }
  return holdings;
}

std::string Joined(const std::set<std::string>& addresses) {
  std::string text;
  for (const std::string& address : addresses) text.append(" ").append(address);
  return text.empty() ? " nothing" : text;
}

struct Found {
  Holdings held;
  std::set<std::string> cooling_down;
};

Result<Found> ReadStore(const Root& root, std::vector<std::string>* findings) {
  Found found;
  const auto store = RH_TRY(ipam::AddressStore::OpenExisting(root));
  if (!store) return found;
  for (std::string& finding : RH_TRY(store->Verify())) findings->push_back("store: " + std::move(finding));
  std::set<std::string> all;
  const auto records = RH_TRY(store->List());
  for (const ipam::AddressRecord& record : records) {
    const std::string address = record.address.ToString();
    if (!all.insert(address).second) findings->push_back(address + " is there twice");
    if (record.state == ipam::AddressState::kHeld) {
      found.held[record.owner.container].insert(address);
    } else {
      found.cooling_down.insert(address);
    }
  }
  return found;
}

void Compare(const std::vector<Operation>& operations, std::size_t answered, const Found& found,
             std::vector<std::string>* findings) {
  const Holdings sure = After(operations, answered);
  const Holdings possible = After(operations, std::min(answered + 1, operations.size()));
  std::set<std::string> containers;
  for (const auto& holdings : {sure, possible, found.held}) {
    for (const auto& [container, addresses] : holdings) containers.insert(container);
  }
  const auto of = [](const Holdings& holdings, const std::string& container) {
    const auto at = holdings.find(container);
    return at == holdings.end() ? std::set<std::string>{} : at->second;
  };
  for (const std::string& container : containers) {
    const auto now = of(found.held, container);
    if (now == of(sure, container) || now == of(possible, container)) continue;
    findings->push_back(container + " holds" + Joined(now) + ", not" + Joined(of(sure, container)));
  }
  for (std::size_t i = 0; i < answered; ++i) {
    if (!operations[i].add) continue;
    for (const std::string& address : operations[i].addresses) {
      const bool held = std::any_of(found.held.begin(), found.held.end(),
                                    [&](const auto& one) { return one.second.contains(address); });
      if (!held && !found.cooling_down.contains(address))
        findings->push_back(address + " was allocated and is neither held nor in its reuse delay");
    }
  }
}

// Runs the next ADD, as a runtime does.
Result<void> RunAdd(const RecoverySetting& setting) {
  CniRequest request;
  request.container_id = "next";
  request.netns = "/proc/1/ns/net";
  request.ifname = "eth1";
  request.path = {setting.plugins};
  if (::setenv("RAILHEAD_ROOT", setting.directory.c_str(), 1) != 0)
    return FailSys(errno, "setting RAILHEAD_ROOT");
  RH_TRY(RunDelegate(
      request, {.type = "railhead-ipam", .command = "ADD", .config = setting.config, .inherited_fds = {}}));
  return {};
}

}  // namespace

Result<std::vector<Operation>> ReadOperations(const std::string& path) {
  const auto text = RH_TRY(ReadFile(path));
  std::vector<Operation> operations;
  std::istringstream lines(text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Operation operation;
    std::string verb;
    words >> operation.number >> verb >> operation.container;
    operation.add = verb == "ADD";
    for (std::string address; words >> address;) operation.addresses.push_back(address);
    if (operation.number != operations.size() + 1 || (operation.add && operation.addresses.empty()))
      return Fail(ErrorCode::kMalformed, "not as written by guest.sh: '" + line + "'");
    operations.push_back(std::move(operation));
  }
  return operations;
}

Result<std::vector<std::string>> CheckRecovery(const RecoverySetting& setting, const std::string& image,
                                               std::size_t answered) {
  RH_TRY(WriteDevice(setting.device, image));
  std::vector<std::string> findings;
  const Mounted mounted = RH_TRY(Mounted::Mount(setting.device, setting.directory));
  const Root root(setting.directory);
  const auto found = ReadStore(root, &findings);
  if (!found) {
    findings.push_back("the store cannot be read: " + Describe(found.error()));
    return findings;
  }
  Compare(setting.operations, answered, *found, &findings);
  const auto added = RunAdd(setting);
  if (!added) findings.push_back(Describe(added.error()));
  std::vector<std::string> after;
  const auto with_next = RH_TRY(ReadStore(root, &after));
  findings.insert(findings.end(), after.begin(), after.end());
  const auto next = with_next.held.find("next");
  if (added && next == with_next.held.end()) findings.emplace_back("the next ADD is not in the store");
  for (const auto& [container, addresses] : found->held) {
    for (const std::string& address : addresses) {
      if (next == with_next.held.end() || !next->second.contains(address)) continue;
      findings.emplace_back("the next ADD got an address of ").append(container).append(": ").append(address);
    }
  }
  return findings;
}

}  // namespace railhead::testing
