#include "cni/protocol/cni_error.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace railhead {
namespace {

constexpr std::array<std::pair<ErrorCode, int>, 15> kCodes{{
    {ErrorCode::kMalformed, kCniDecode},
    {ErrorCode::kInvalid, kCniInvalidConfig},
    {ErrorCode::kNamespace, kCniInvalidNetns},
    {ErrorCode::kBusy, kCniTryAgainLater},
    {ErrorCode::kTimeout, kCniTryAgainLater},
    {ErrorCode::kIo, kCniIo},
    {ErrorCode::kNotFound, kCniNotFound},
    {ErrorCode::kExists, kCniExists},
    {ErrorCode::kUnsupported, kCniUnsupported},
    {ErrorCode::kPermission, kCniPermission},
    {ErrorCode::kExhausted, kCniExhausted},
    {ErrorCode::kConflict, kCniConflict},
    {ErrorCode::kInternal, kCniInternal},
    {ErrorCode::kUnavailable, kCniUnavailable},
    {ErrorCode::kLimited, kCniLimited},
}};

// Names out of configurations stand in messages, which runtimes print and log as they are.
std::string MadeSafe(std::string text) {
  for (char& c : text) {
    if ((c >= 0 && c < ' ') || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace

int CniCodeOf(ErrorCode code) {
  for (const auto& [ours, cni] : kCodes) {
    if (ours == code) return cni;
  }
  return kCniInternal;
}

ErrorCode ErrorCodeOfCni(int cni_code) {
  if (cni_code == kCniIncompatibleVersion || cni_code == kCniUnsupportedField) return ErrorCode::kUnsupported;
  if (cni_code == kCniBadEnvironment) return ErrorCode::kInvalid;
  for (const auto& [ours, cni] : kCodes) {
    if (cni == cni_code) return ours;
  }
  return ErrorCode::kIo;
}

std::string CniErrorJson(const std::string& cni_version, int code, const std::string& msg,
                         const std::string& details) {
  nlohmann::ordered_json json;
  json["cniVersion"] = cni_version;
  json["code"] = code;
  json["msg"] = MadeSafe(msg);
  if (!details.empty()) json["details"] = MadeSafe(details);
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace railhead
