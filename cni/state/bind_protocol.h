// Late binding: the protocol between ADD and railheadd.
//
// kubelet allocated slots to the pod, not devices. At ADD the pod's accelerators are known, and railheadd
// binds each slot to a device. Each direction sends one line of JSON over a unix stream socket: the request,
// and then devices or an error like a CNI error.
//
//   `{"version":1,"podUid":"...","pod":"NAMESPACE/NAME","containerId":"...","slots":["slot-1a2b-n0-03"]}`
//   `{"devices":{"slot-1a2b-n0-03":"0000:43:10.2"}}`
//   `{"code":11,"msg":"...","details":"..."}`
//
// Both sides check the other's user, besides the folder and the mode of the socket. Threads: pure functions.
// Errors: kMalformed, kInvalid for other lines; the error in the answer.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

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

// Slot -> PCI address of its device, for all slots of the request.
using Bindings = std::map<std::string, std::string>;

// With the newline; both sides read no more than this.
inline constexpr std::size_t kMaxBindLine = std::size_t{64} * 1024;

// Whether the process at the other end of this unix socket belongs to root or to this process's user. The
// kernel knows the user that connected or began to listen (unix(7), SO_PEERCRED).
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

}  // namespace railhead
