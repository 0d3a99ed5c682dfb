// Restores the settings of a device (netns/nl/device_state.h) that its pod has changed.
//
// Threads: as DeviceApi. Errors: kNotFound when the device goes meanwhile.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead {

// What is still not as before: the next pod would get it.
struct LeftSettings {
  std::vector<std::string> fields;
  std::string reason;  // why the first one was refused; empty: the writes succeeded without effect
};

// Writes what is not as before, and only that. A setting that is refused because of another one is tried
// again after the others. Two differences are not reported: a value that the driver chose itself, and
// something that was attached before ADD and cannot be attached again.
Result<LeftSettings> RestoreSettings(DeviceApi& devices, const Link& link, const DeviceState& before);

// "rings.rx, channels.combined (Device or resource busy)"
std::string Describe(const LeftSettings& left);

}  // namespace railhead
