// A switch in user space between the PFs of several nodes, whose faults a test chooses.
//
// Every frame that arrives at one port goes out at all others, unless `drops` returns true for that way. It
// answers ARP for addresses of its own. One node is one PF: pf0, pf1, ... (tests/support/netns/wires.h).
// Threads: a thread forwards; rules may be changed at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/unique_fd.h"
#include "tests/support/netns/wires.h"

namespace railhead::testing {

struct Passing {
  int from = 0;  // port
  int to = 0;
  std::size_t size = 0;           // of the frame
  std::uint16_t source_port = 0;  // UDP; 0: something else
  std::uint16_t to_port = 0;
  int vlan = 0;
  int traffic_class = 0;  // of UDP: the byte of the IP header
};

class FakeSwitch {
 public:
  FakeSwitch(const Wires& wires, int ports);
  ~FakeSwitch();
  FakeSwitch(const FakeSwitch&) = delete;
  FakeSwitch& operator=(const FakeSwitch&) = delete;

  // Applies from now on. nullptr: no frame is lost. The rule also applies to ARP.
  void Drop(std::function<bool(const Passing&)> drops);
  // Whether the switch itself answers ARP for an address at a port, in a VLAN (0: untagged).
  using Owns = std::function<bool(int port, int vlan, const IpAddress& address)>;
  void Own(Owns owns);

 private:
  void Loop();
  // `frame` without its tag.
  void Forward(int from, int vlan, std::vector<std::uint8_t>* frame);
  void AnswerArp(int port, int vlan, const std::vector<std::uint8_t>& frame);
  void Send(int port, int vlan, std::vector<std::uint8_t> frame);

  std::vector<UniqueFd> ports_;
  std::mutex mutex_;
  std::function<bool(const Passing&)> drops_;
  Owns owns_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace railhead::testing
