// Stand-ins for NICs and pods, for tests on the real kernel without hardware:
// network namespaces that die with their handle, veth pairs, macvlans, bridges.
//
// The test owns the namespaces in which netlink makes everything, so nothing remains after a test that fails
// or is killed. A failed set-up ends the process: a test that cannot set up must not look like one that
// passed.
// Threads: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/unique_fd.h"
#include "netns/kernel.h"
#include "netns/nl/socket.h"
#include "netns/ns/netns.h"

namespace railhead::testing {

// For WaitCarrier and captures. It is generous, since tests run on busy machines.
inline constexpr std::chrono::seconds kLong{60};
Deadline NetDeadline();

// A new, empty network namespace (with its lo, down).
NetNs MakeNetns();
// Another handle on the same namespace.
NetNs Duplicate(const NetNs& ns);

// Returns the value, or ends the process with the error.
template <typename T>
T Must(Result<T> result);
void Must(Result<void> result);
[[noreturn]] void Die(const Error& error);

std::unique_ptr<RouteApi> OpenRoute(const NetNs& ns);
// An rtnetlink socket for messages that RouteApi does not have.
nl::Socket OpenRaw(const NetNs& ns);

// Each returns the index of the new link `name` in `ns`; all are down.
int AddVeth(const NetNs& ns, const std::string& name, const NetNs& peer_ns, const std::string& peer_name);
int AddMacvlan(const NetNs& ns, const std::string& name, int lower);
int AddBridge(const NetNs& ns, const std::string& name);
void DeleteLink(const NetNs& ns, int index);

// A link, which must be there.
Link GetLink(RouteApi& route, const std::string& name);
Link GetLink(RouteApi& route, int index);
void BringUp(RouteApi& route, int index);

// Sends `frame`, which includes its Ethernet header, once from the link `index`.
void SendFrame(const NetNs& ns, int index, const std::vector<std::uint8_t>& frame);

// All frames that arrive on a link from now on.
class Capture {
 public:
  Capture(const NetNs& ns, int index);
  // The first one of this EtherType; nullopt when kLong has passed.
  std::optional<std::vector<std::uint8_t>> Next(std::uint16_t ether_type);

 private:
  UniqueFd fd_;
};

template <typename T>
T Must(Result<T> result) {
  if (!result) Die(result.error());
  return std::move(*result);
}

}  // namespace railhead::testing
