// Recordings of health, as `railctl health replay` gets them from people and from nodes.
#include "deviceplugin/services/health/recording.h"

#include <nlohmann/json.hpp>

#include "deviceplugin/services/health/recorded_device.h"
#include "deviceplugin/services/health/replay.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

constexpr std::size_t kFewRounds = 2000;

void CheckOrder(const health::Recording& recording) {
  std::chrono::milliseconds last{0};
  for (const health::RecordedSegment& segment : recording.segments) {
    Require(segment.at >= last, "a segment begins after the one before");
    last = segment.at;
    for (const health::RecordedRound& round : segment.rounds) {
      Require(round.at >= last, "time never goes back");
      last = round.at;
      for (const health::RecordedDevice& device : round.devices)
        Require(device.subject.is_vf == (device.subject.pf_id != device.subject.id), "a VF has a PF");
    }
  }
}

// One line can describe a whole device.
void CheckDelta(const health::RecordedDevice& device) {
  const std::string& id = device.subject.id;
  auto delta = DeviceDelta(health::NewRecordedDevice(id), device);
  const auto line = JsonDocument::Parse(delta.dump(), "delta");
  Require(line.has_value(), "a line is JSON");
  JsonReader reader = line->Root();
  health::RecordedDevice again = health::NewRecordedDevice(id);
  ApplyDelta(&reader, &again);
  reader.Close();
  Require(reader.status().has_value(), "what we write is read");
  Require(DeviceDelta(device, again).empty(), "and says the same");
}

void ReadRecording(const std::string& text) {
  const auto recording = health::ParseRecording(text, "input");
  if (!recording) return Require(!recording.error().message.empty(), "a refusal says why");
  CheckOrder(*recording);
  std::size_t rounds = 0;
  for (const health::RecordedSegment& segment : recording->segments) {
    rounds += segment.rounds.size();
    for (const health::RecordedRound& round : segment.rounds) {
      for (const health::RecordedDevice& device : round.devices) CheckDelta(device);
    }
    Require(health::ParseRecording(HeaderLine(segment.header), "header").has_value(),
            "a header is read again");
  }
  if (rounds > kFewRounds) return;
  const health::ReplayResult first = Replay(*recording, std::nullopt);
  Require(first.end == Replay(*recording, std::nullopt).end, "a replay says the same each time");
  (void)Missing(*recording, health::HealthRules());
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::fuzz::ReadRecording(railhead::fuzz::TextOf(data, size));
  return 0;
}
