// Restores the settings of a device (netns/nl/device_state.h) that its pod has changed.
//
// Threads: as DeviceApi. Errors: kNotFound if the device is removed during the call.
#pragma once

#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/kernel.h"

namespace railhead::attachment {

// Settings that are still not as before: the next pod would get them.
struct UnrestoredSettings {
  std::vector<std::string> fields;
  std::string reason;  // why the first one was refused; empty: the writes succeeded without effect
};

// Writes only the settings that are not as before. Tries a setting that another one blocks again after the
// others. Two differences are not reported: a value that the driver chose itself, and a program that was
// attached before ADD and cannot be attached again.
Result<UnrestoredSettings> RestoreSettings(DeviceApi& devices, const Link& link, const DeviceState& before);

// "rings.rx, channels.combined (Device or resource busy)"
std::string Describe(const UnrestoredSettings& unrestored);

}  // namespace railhead::attachment
