// The documents that a migration starts from, recognized by their content.
//
// sriov-network-device-plugin's config.json, alone or in a ConfigMap (the SR-IOV operator's has an entry
// for each node); NetworkAttachmentDefinitions; lists of these, as kubectl prints them. JSON or YAML.
// Threads: pure functions. Errors: kMalformed, kInvalid with document, key and, of broken JSON, the byte.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "netns/base/addresses.h"
#include "netns/base/result.h"

namespace railhead::migrate {

inline constexpr std::size_t kMaxDocument = std::size_t{16} << 20;

struct DeviceConfig {
  std::string source;  // "cm.yaml: ConfigMap kube-system/sriovdp: config.json"
  std::string entry;   // of a ConfigMap; "": the document itself
  std::string text;
};

struct NetworkDefinition {
  std::string source;
  std::string space;  // its namespace; "": none
  std::string name;
  nlohmann::json object;  // with the JSON of /spec/config in place of its text
};

// The addresses that host-local has allocated on a node.
struct HeldAddresses {
  std::string source;  // its directory
  std::string network;
  std::vector<IpAddress> addresses;
};

struct Documents {
  std::vector<DeviceConfig> device_configs;
  std::vector<NetworkDefinition> networks;
  std::vector<HeldAddresses> held;
  std::vector<std::string> untouched;  // other documents, a line each
};

// Adds the documents in `text`. `what` is its name in errors and in the report.
Result<void> AddDocuments(const std::string& text, const std::string& what, Documents* documents);

}  // namespace railhead::migrate
