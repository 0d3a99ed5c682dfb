#include "cni/state/bind_protocol.h"

#include <sys/socket.h>
#include <unistd.h>

#include "cni/protocol/cni_result.h"
#include "netns/json/record_io.h"
#include "netns/sys/pci_address.h"

namespace railhead {
bool IsPeerTrusted(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  const bool known = ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  return known && (peer.uid == 0 || peer.uid == ::geteuid());
}

Result<std::string> FormatBindRequest(const BindRequest& request) {
  return FormatRecord(request, "request for devices");
}

Result<BindRequest> ParseBindRequest(const std::string& line) {
  return ParseRecord<BindRequest>(line, "request for devices");
}

std::string FormatBindAnswer(const Result<Bindings>& answer) {
  BindAnswer bind_answer;
  if (answer) {
    bind_answer.devices = *answer;
  } else {
    const Error& error = answer.error();
    bind_answer = {std::nullopt, CniCodeOf(error.code), error.message, error.hint};
  }
  return record::Dump(ToJson(bind_answer)) + "\n";
}

Result<Bindings> ParseBindAnswer(const std::string& line, const BindRequest& request) {
  const std::string what = "railheadd's answer";
  const BindAnswer answer = RH_TRY(ParseRecord<BindAnswer>(line, what));
  if (answer.code) {
    return Fail(ErrorCodeOfCni(*answer.code), answer.message.empty() ? "railheadd refused" : answer.message,
                answer.hint);
  }
  Bindings bindings;
  for (const std::string& slot : request.slots) {
    const auto device = answer.devices ? answer.devices->find(slot) : Bindings::const_iterator();
    if (!answer.devices || device == answer.devices->end() || !PciAddress::Parse(device->second)) {
      return Fail(ErrorCode::kInvalid, std::string(what).append(" names no device for ").append(slot),
                  "install railheadd and railhead of the same version");
    }
    bindings[slot] = device->second;
  }
  return bindings;
}

}  // namespace railhead
