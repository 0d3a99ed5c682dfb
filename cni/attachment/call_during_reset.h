// Calls that a VF's interface refuses while its PF resets the VF.
//
// Drivers ice and i40e reset a VF when its MAC, VLAN or trust is set through the PF (ice_set_vf_mac,
// i40e_ndo_set_vf_mac and their siblings). Until iavf has negotiated with its PF again, it refuses a new MAC
// with EAGAIN or EACCES (iavf_set_mac), and link up with EBUSY (iavf_open). Threads: any. Errors: those of
// the call, if they last for kVfResetLimit or have another code.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "netns/base/poll_pause.h"
#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// A reset takes some hundred milliseconds; iavf waits 2.5 s for an answer of the PF.
inline constexpr std::chrono::seconds kVfResetLimit{10};

// Repeats the call while a reset may be the reason for its error.
template <typename Call>
Result<void> CallDuringReset(const Call& call, Deadline deadline = Deadline::max()) {
  deadline = std::min(deadline, std::chrono::steady_clock::now() + kVfResetLimit);
  for (PollPause pause;;) {
    Result<void> done = call();
    const int error = done ? 0 : done.error().sys_errno;
    const bool of_reset = error == EAGAIN || error == EACCES || error == EBUSY;
    if (!of_reset || std::chrono::steady_clock::now() >= deadline) return done;
    std::this_thread::sleep_for(pause.Next());
  }
}

}  // namespace railhead::attachment
