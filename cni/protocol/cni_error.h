// Errors as the CNI specification writes them (SPEC.md, section "Error").
//
// Codes: 1 incompatible version, 4 bad environment, 5 I/O, 6 decoding, 7 invalid
// network configuration, 8 invalid namespace, 11 try again later; of STATUS: 50 not
// available, 51 not available and containers may be limited; ours from 100:
//   101 not found   102 exists      103 unsupported  104 permission
//   105 exhausted   106 conflict    999 internal
#pragma once

#include <string>

#include "netns/base/error.h"

namespace railhead {

inline constexpr int kCniIncompatibleVersion = 1;
inline constexpr int kCniUnsupportedField = 2;
inline constexpr int kCniBadEnvironment = 4;
inline constexpr int kCniIo = 5;
inline constexpr int kCniDecode = 6;
inline constexpr int kCniInvalidConfig = 7;
inline constexpr int kCniInvalidNetns = 8;
inline constexpr int kCniTryAgainLater = 11;
inline constexpr int kCniUnavailable = 50;
inline constexpr int kCniLimited = 51;
inline constexpr int kCniNotFound = 101;
inline constexpr int kCniExists = 102;
inline constexpr int kCniUnsupported = 103;
inline constexpr int kCniPermission = 104;
inline constexpr int kCniExhausted = 105;
inline constexpr int kCniConflict = 106;
inline constexpr int kCniInternal = 999;

int CniCodeOf(ErrorCode code);
// The other way round, for what a delegated plugin answered.
ErrorCode ErrorCodeOfCni(int cni_code);

// {"cniVersion", "code", "msg", "details"}
std::string CniErrorJson(const std::string& cni_version, int code, const std::string& msg,
                         const std::string& details);

}  // namespace railhead
