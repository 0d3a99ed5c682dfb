// Late binding: what ADD and railheadd say to each other.
//
// kubelet gave the pod slots, not devices; at ADD the pod's accelerators are known, and
// railheadd says which device each slot shall be. Over a unix stream socket, one line of
// JSON each way:
//   {"version":1,"podUid":"...","pod":"NAMESPACE/NAME","containerId":"...","slots":["slot-1a2b-n0-03"]}
//   {"devices":{"slot-1a2b-n0-03":"0000:43:10.2"}}      or
//   {"code":11,"msg":"...","details":"..."}             as a CNI error has it
// Both sides look who the other one is: a socket's place and mode are not all that keeps others away.
// Threads: pure functions, but for BindSlots(), which waits for the daemon. Errors: kMalformed, kInvalid for
// lines that are none; of an answer that is an error, that error.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead {

struct BindRequest {
  std::string pod_uid;
  std::string container_id;
  std::vector<std::string> slots;
  std::string pod;  // NAMESPACE/NAME; "" when the runtime did not say

  bool operator==(const BindRequest&) const = default;
};

template <>
struct Shape<BindRequest> {
  static void List(auto& f) {
    f.Version(1);
    f("podUid", &BindRequest::pod_uid, kRequiredField);
    f("pod", &BindRequest::pod);
    f("containerId", &BindRequest::container_id, kRequiredField);
    f("slots", &BindRequest::slots);
  }
  static void Check(const BindRequest& request, const auto& complain) {
    if (request.slots.empty()) complain("slots", "names none");
  }
};

// Slot -> PCI address of its device; for all that were asked for.
using Bindings = std::map<std::string, std::string>;

// With the newline; both sides read no more than this.
inline constexpr std::size_t kMaxBindLine = std::size_t{64} * 1024;

// Whether a device id is a slot's. The names are made by the device plugin.
inline bool IsSlot(std::string_view id) {
  return id.starts_with("slot-");
}

// Whether who is at the other end of this unix socket is root, or the same user as we are
// (unix(7), SO_PEERCRED): as it was when it connected, or began to listen.
bool IsPeerTrusted(int connection);

Result<std::string> FormatBindRequest(const BindRequest& request);
Result<BindRequest> ParseBindRequest(const std::string& line);
// Either devices, or an error's code.
struct BindAnswer {
  std::optional<Bindings> devices;
  std::optional<int> code;
  std::string message;
  std::string hint;

  bool operator==(const BindAnswer&) const = default;
};

template <>
struct Shape<BindAnswer> {
  static void List(auto& f) {
    f("devices", &BindAnswer::devices);
    f("code", &BindAnswer::code, {.min = 0});
    f("msg", &BindAnswer::message, kSparseField);
    f("details", &BindAnswer::hint, kSparseField);
  }
};

std::string FormatBindAnswer(const Result<Bindings>& answer);
Result<Bindings> ParseBindAnswer(const std::string& line, const BindRequest& request);

// Asks railheadd which devices a pod's slots shall be: the one thing that only the daemon
// knows. Waits at most 10 s. kBusy (try again later) when no daemon answers, else what the daemon says.
Result<Bindings> BindSlots(const Root& root, const BindRequest& request);

}  // namespace railhead
