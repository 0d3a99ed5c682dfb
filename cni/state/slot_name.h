// IsSlot: tells the ids of slots from those of devices.
// Threads: pure functions. Errors: none.
#pragma once

#include <string_view>

namespace railhead {

// Whether a device id is a slot. The device plugin makes the names.
inline bool IsSlot(std::string_view id) {
  return id.starts_with("slot-");
}

}  // namespace railhead
