#include "tests/system/soak/invariants.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "netns/base/files.h"

namespace railhead::soak {
namespace {

// "file PATH MODE CONTENT" directly below /run/railhead. A running railheadd rewrites these files at any
// time. Files of attachments are in directories.
bool IsOfDaemon(const std::string& line) {
  constexpr std::string_view kStart = "file /run/railhead/";
  if (!line.starts_with(kStart)) return false;
  return line.find('/', kStart.size()) > line.find(' ', kStart.size());
}

// A macvlan may be removed while its NIC is down. Then the kernel keeps its part of the NIC's promiscuity
// count until the NIC is up again. (igbvf has no filter for unicast addresses: net/core/dev_addr_lists.c.) A
// count that stays after that is wrong.
void CountPromiscuityAnew(const std::string& difference) {
  constexpr std::string_view kStart = "+ host link ";
  for (std::size_t at = 0; (at = difference.find(kStart, at)) != std::string::npos;) {
    at += kStart.size();
    const std::string name = difference.substr(at, difference.find(' ', at) - at);
    if (difference.compare(at + name.size(), 9, " promisc=") != 0) continue;
    std::string cycle = "ip link set ";
    cycle.append(name).append(" up; ip link set ").append(name).append(" down");
    (void)Shell(cycle);
  }
}

// Other network namespaces that our programs keep open, as "process P holds net:[N]".
std::string HeldNamespaces() {
  std::string held;
  const auto own = ReadLink("/proc/self/ns/net");
  if (!own || !*own) return held;
  for (const pid_t process : Children()) {
    const std::string directory = "/proc/" + std::to_string(process) + "/fd";
    const auto files = ListDirectory(directory);
    if (!files || !*files) continue;
    for (const auto& file : **files) {
      const auto target = ReadLink(directory + "/" + file);
      if (target && *target && (*target)->starts_with("net:[") && **target != **own)
        held.append("process ")
            .append(std::to_string(process))
            .append(" holds ")
            .append(**target)
            .append("\n");
    }
  }
  return held;
}

}  // namespace

bool Grows(const std::vector<Use>& samples) {
  // A thread pool and a heap reach their size within the first waves.
  constexpr std::ptrdiff_t kWarm = 4;
  constexpr std::ptrdiff_t kLast = 3;
  if (std::ssize(samples) < kWarm + kLast) return false;
  const auto grows = [&](long Use::*part, long slack) {
    const auto by = [part](const Use& a, const Use& b) { return a.*part < b.*part; };
    const Use& most = *std::max_element(samples.begin(), samples.begin() + kWarm, by);
    const Use& least = *std::min_element(samples.end() - kLast, samples.end(), by);
    return least.*part > most.*part + slack;
  };
  return grows(&Use::kilobytes, 16384) || grows(&Use::threads, 6) || grows(&Use::descriptors, 6);
}

Result<crash::Snapshot> Invariants::Take() const {
  crash::Snapshot lines = RH_TRY(crash::TakeSnapshot({node_.root(), {}}));
  std::erase_if(lines, IsOfDaemon);
  return lines;
}

Result<void> Invariants::ReadBaseline() {
  baseline_ = RH_TRY(Take());
  return {};
}

std::string Invariants::Left() {
  if (node_.Reap()) return "a plugin is still running\n";
  const auto now = Take();
  if (!now) return Describe(now.error()) + "\n";
  std::string left = crash::Difference(baseline_, *now);
  CountPromiscuityAnew(left);
  left += HeldNamespaces();
  const auto namespaces = ListDirectory(node_.setting().netns_directory);
  if (namespaces && *namespaces) {
    for (const auto& name : **namespaces) {
      if (name.starts_with("soak-")) left += "namespace " + name + " is left\n";
    }
  }
  return left;
}

void Invariants::Expect() {
  std::string left;
  const bool same = Await(
      [&] {
        left = Left();
        return left.empty();
      },
      node_.setting().patience);
  if (!same) node_.Wrong("the state is another one than before:\n" + left);
}

void Invariants::Sample() {
  for (const auto& daemon : node_.daemons()) {
    const pid_t pid = daemon->pid();
    const std::string directory = "/proc/" + std::to_string(pid);
    const auto status = ReadFile(directory + "/status");
    const auto files = ListDirectory(directory + "/fd");
    if (!status || !*status || !files || !*files) continue;
    uses_[pid].push_back(
        {FieldOf(**status, "VmRSS"), FieldOf(**status, "Threads"), static_cast<long>((*files)->size())});
  }
}

void Invariants::ExpectNoGrowth() {
  for (const auto& [pid, uses] : uses_) {
    const Use& first = uses.front();
    const Use& last = uses.back();
    (void)std::printf("railheadd %d, %zu waves: %ld -> %ld kB, %ld -> %ld threads, %ld -> %ld descriptors\n",
                      pid, uses.size(), first.kilobytes, last.kilobytes, first.threads, last.threads,
                      first.descriptors, last.descriptors);
    if (Grows(uses)) node_.Wrong("railheadd " + std::to_string(pid) + " grows");
  }
}

}  // namespace railhead::soak
