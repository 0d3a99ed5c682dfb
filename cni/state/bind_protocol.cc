#include "cni/state/bind_protocol.h"

#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cni/protocol/cni_result.h"
#include "netns/json/json_reader.h"
#include "netns/sys/pci.h"

namespace railhead {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

bool IsPeerTrusted(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  const bool known = ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
  return known && (peer.uid == 0 || peer.uid == ::geteuid());
}

std::string FormatBindRequest(const BindRequest& request) {
  return Line({{"version", 1},
               {"podUid", request.pod_uid},
               {"pod", request.pod},
               {"containerId", request.container_id},
               {"slots", request.slots}});
}

Result<BindRequest> ParseBindRequest(const std::string& line) {
  const JsonDocument document = RH_TRY(JsonDocument::Parse(line, "request for devices"));
  JsonReader reader = document.Root();
  if (!reader.Int("version", 1, 1)) reader.Fail("version", "is required");
  BindRequest request;
  request.pod_uid = reader.RequiredString("podUid");
  request.pod = reader.String("pod").value_or("");
  request.container_id = reader.RequiredString("containerId");
  request.slots = reader.Strings("slots").value_or(std::vector<std::string>{});
  if (request.slots.empty()) reader.Fail("slots", "names none");
  RH_TRY(reader.status());
  return request;
}

std::string FormatBindAnswer(const Result<Bindings>& answer) {
  if (answer) return Line({{"devices", *answer}});
  const Error& error = answer.error();
  return Line({{"code", CniCodeOf(error.code)}, {"msg", error.message}, {"details", error.hint}});
}

Result<Bindings> ParseBindAnswer(const std::string& line, const BindRequest& request) {
  const std::string what = "railheadd's answer";
  const JsonDocument document = RH_TRY(JsonDocument::Parse(line, what));
  JsonReader reader = document.Root();
  if (const auto code = reader.Int("code", 0, INT32_MAX); code) {
    return Fail(ErrorCodeOfCni(static_cast<int>(*code)), reader.String("msg").value_or("railheadd refused"),
                reader.String("details").value_or(""));
  }
  Bindings bindings;
  auto devices = reader.Object("devices");
  for (const std::string& slot : request.slots) {
    const auto device = devices ? devices->String(slot) : std::nullopt;
    if (!device || !PciAddress::Parse(*device)) {
      return Fail(ErrorCode::kInvalid, std::string(what).append(" names no device for ").append(slot),
                  "is railheadd of another version than railhead?");
    }
    bindings[slot] = *device;
  }
  RH_TRY(reader.status());
  return bindings;
}

}  // namespace railhead
