#include "tests/support/netns/wires.h"

#include <chrono>
#include <thread>

namespace railhead::testing {

bool Holds(const std::function<bool()>& condition) {
  for (const auto deadline = NetDeadline(); std::chrono::steady_clock::now() < deadline;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

Wires::Wires(int count) : host_(Must(NetNs::Current())), count_(count) {
  for (int number = 0; number < count; ++number) Plug(number);
}

Wires::~Wires() {
  for (int number = 0; number < count_; ++number) Unplug(number);
}

int Wires::Near(int number) const {
  return GetLink(*OpenRoute(host_), "pf" + std::to_string(number)).index;
}

int Wires::Far(int number) const {
  return GetLink(*OpenRoute(switch_), "swp" + std::to_string(number)).index;
}

void Wires::Plug(int number) {
  const std::string n = std::to_string(number);
  const int near = AddVeth(host_, "pf" + n, switch_, "swp" + n);
  const auto host = OpenRoute(host_);
  const auto far = OpenRoute(switch_);
  BringUp(*host, near);
  BringUp(*far, Far(number));
  if (!Must(host->WaitCarrier(near, NetDeadline())) || !Must(far->WaitCarrier(Far(number), NetDeadline())))
    Die(Error{ErrorCode::kTimeout, "the veth pair did not come up", "", 0});
}

void Wires::Unplug(int number) {
  const auto far = Must(OpenRoute(switch_)->FindLink("swp" + std::to_string(number)));
  if (far) DeleteLink(switch_, far->index);
}

}  // namespace railhead::testing
