// RecordedDevice: one device in a recording, with its latest observation.
//
// The lines of docs/reference/recording.md have only the differences to the device's line before. Fields that
// the first line of a device lacks are those of a default RecordedDevice: a PF that is present, bound,
// without link and port. A line has only counters whose value has changed: an equal value makes no difference
// to the rules.
// Threads: pure functions. Errors stick in the JsonReader.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "deviceplugin/services/health/observation.h"
#include "netns/json/json_reader.h"

namespace railhead::health {

struct RecordedDevice {
  HealthSubject subject;
  Observation seen;
  bool unread = false;  // could not be read: nothing was observed
};

// The state before its first line.
RecordedDevice NewRecordedDevice(const std::string& id);

// The differences of `now`, without time and name. Empty: none.
nlohmann::ordered_json DeviceDelta(const RecordedDevice& before, const RecordedDevice& now);
// `before` with the present observation. Counters that were not read keep their value.
RecordedDevice WithSeen(RecordedDevice before, const HealthSubject& subject, const Observation& seen);

// Reads what DeviceDelta wrote; the caller closes the reader.
void ApplyDelta(JsonReader* line, RecordedDevice* device);

}  // namespace railhead::health
