// A CNI result of any version from 0.3.0 to 1.1.0 as one value.
//
// Written in the version that the runtime asked for: "version" inside ips up to
// 0.4.0, mtu, pciID and socketPath of interfaces and the route metrics from 1.1.0 on. What
// an older version cannot express is left out.
// Threads: values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "netns/base/ip_address.h"
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

}  // namespace railhead
