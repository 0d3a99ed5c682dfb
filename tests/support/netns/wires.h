// A node whose PFs are veths in this process's network namespace (private: tests/support/netns/main.cc), each
// with its other end in the namespace of a switch.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "netns/kernel.h"
#include "tests/support/netns/lldp_frame.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {

// Checks the condition until it holds or kLong has passed.
bool Holds(const std::function<bool()>& condition);

class Wires {
 public:
  // Makes pf0, pf1, ...; their other ends are swp0, swp1, ...
  explicit Wires(int count);
  // Removes the links, so that they do not disturb the next test.
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  // From the switch's end of pfN.
  void Send(int number, const Bytes& frame) const { SendFrame(switch_, Far(number), frame); }
  [[nodiscard]] const NetNs& host() const { return host_; }
  [[nodiscard]] const NetNs& the_switch() const { return switch_; }
  [[nodiscard]] int Near(int number) const;
  [[nodiscard]] int Far(int number) const;
  // A new cable in the place of one that was removed.
  void Plug(int number);
  void Unplug(int number);

 private:
  NetNs host_;
  NetNs switch_ = MakeNetns();
  const int count_;
};

}  // namespace railhead::testing
