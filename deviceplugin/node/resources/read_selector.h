// The selectors of sriov-network-device-plugin's config.json: for sriovdp_config.cc.
//
// Threads: pure functions. Errors stick in the reader, with the JSON pointer.
#pragma once

#include <map>
#include <string>

#include "deviceplugin/node/resources/selector.h"
#include "netns/json/json_reader.h"

namespace railhead::resources {

// A reader's keys as they are spelt in the text, found by their names in any case.
class AnyCase {
 public:
  explicit AnyCase(JsonReader* reader);
  [[nodiscard]] std::string operator()(const std::string& name) const;

 private:
  std::map<std::string, std::string> spelling_;
};

// Reads one whole selector object of a resource of deviceType `kind`.
Selector ReadSelector(JsonReader* reader, inventory::FunctionKind kind);

}  // namespace railhead::resources
