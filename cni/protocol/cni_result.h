// A CNI result of any version from 0.3.0 to 1.1.0 as one value.
//
// Writing uses the version that the runtime requested. Up to 0.4.0 an entry of ips has "version". From 1.1.0
// on interfaces have mtu, pciID and socketPath, and routes have their metrics. Fields that an older version
// lacks are omitted.
//
// Threads: values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/json/json_reader.h"

namespace railhead {

struct CniInterface {
  std::string name;
  std::string mac;
  std::string sandbox;  // namespace path; empty: on the host
  std::optional<int> mtu;
  std::string pci_id;
  std::string socket_path;  // of a vhost-user interface
};

struct CniIp {
  IpPrefix address;
  std::optional<IpAddress> gateway;
  std::optional<int> interface;  // index into interfaces
};

struct CniRoute {
  IpPrefix destination;
  std::optional<IpAddress> gateway;
  std::optional<int> mtu;
  std::optional<int> advmss;
  std::optional<int> priority;
  std::optional<int> table;
  std::optional<int> scope;
};

struct CniResult {
  std::vector<CniInterface> interfaces;
  std::vector<CniIp> ips;
  std::vector<CniRoute> routes;
  std::string dns;  // JSON object as text, passed on; empty: none
};

// {"0.3.0", ..., "1.1.0"}
const std::vector<std::string>& SupportedCniVersions();
bool IsSupportedCniVersion(const std::string& version);

// Reads a result object; unknown fields are accepted (newer plugins add some).
Result<CniResult> ParseCniResult(const std::string& text, const std::string& what);

// One JSON object, newline at the end.
std::string CniResultJson(const CniResult& result, const std::string& cni_version);

// Errors as the CNI specification writes them (SPEC.md, section "Error").
//
// Codes: 1 incompatible version, 4 bad environment, 5 I/O, 6 decoding, 7 invalid network configuration, 8
// invalid namespace, 11 try again later. STATUS also has 50 not available, and 51 not available and
// containers may be limited. Ours begin at 100:
//   101 not found   102 exists      103 unsupported  104 permission
//   105 exhausted   106 conflict    999 internal

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
// The inverse, for the answer of a delegated plugin.
ErrorCode ErrorCodeOfCni(int cni_code);

// {"cniVersion", "code", "msg", "details"}
std::string CniErrorJson(const std::string& cni_version, int code, const std::string& msg,
                         const std::string& details);

}  // namespace railhead
