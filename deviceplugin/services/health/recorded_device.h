// One device in a recording: who it is, what was seen of it last, and the line that tells what is new.
//
// The lines of docs/incidents.md: only what differs from the device's line before. What the first line of
// a device does not tell is as of a default RecordedDevice: a PF that is there, bound, without link and port.
// Counters are those of this line: which were read again and found the same is not told, because to the rules
// it is the same. Threads: pure functions. Errors stick in the JsonReader.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "deviceplugin/services/health/observation.h"
#include "netns/json/json_reader.h"

namespace railhead {

struct RecordedDevice {
  HealthSubject subject;
  Observation seen;
  bool unread = false;  // could not be read: nothing was observed
};

// As it is before its first line.
RecordedDevice NewRecordedDevice(const std::string& id);

// What `now` differs in, without time and name. Empty: in nothing.
nlohmann::ordered_json DeviceDelta(const RecordedDevice& before, const RecordedDevice& now);
// `before` with what was seen of it now: counters that were not read stay.
RecordedDevice WithSeen(RecordedDevice before, const HealthSubject& subject, const Observation& seen);

// Reads what DeviceDelta wrote; the caller closes the reader.
void ApplyDelta(JsonReader* line, RecordedDevice* device);

}  // namespace railhead
