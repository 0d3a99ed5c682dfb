#include "bench/attach.h"

#include <algorithm>
#include <cstdint>

#include "bench/contender.h"
#include "bench/pod_check.h"
#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::bench {
namespace {

// One ADD and one DEL; `record` nullptr: not measured.
Result<void> Turn(Contender& contender, const std::string& id, const std::string& group, Record* record) {
  const auto added = RH_TRY_WRAP(contender.Add(id), contender.name());
  if (contender.device() != nullptr) RH_TRY(CheckAttached(contender));
  const auto deleted = RH_TRY_WRAP(contender.Del(id), contender.name());
  if (contender.device() != nullptr) RH_TRY(CheckDetached(contender));
  if (record == nullptr) return {};
  record->AddParts(group, contender.name(), "ADD", added);
  record->AddParts(group, contender.name(), "DEL", deleted);
  return {};
}

// The largest process of an ADD: of a chain of plugins, and of their children.
Result<void> MeasurePeak(const Setting& setting, Contender& contender, Record& record) {
  const std::string file = setting.scratch + "/peak";
  RH_TRY(RemoveFile(file));
  contender.SetPrefix({setting.programs + "/peak_memory", file});
  const char* const id = "peak";
  RH_TRY_WRAP(contender.Add(id), contender.name() + " under peak_memory");
  const auto lines = RH_TRY(ReadAttribute(file));
  contender.SetPrefix({});
  RH_TRY_WRAP(contender.Del(id), contender.name());
  std::int64_t peak = 0;
  for (const auto& line : Split(lines.value_or(""), '\n')) {
    const auto kib = ParseInt(line);
    if (!kib) return Fail(ErrorCode::kIo, file + ": peak_memory left something that is no number");
    peak = std::max(peak, *kib);
  }
  record.Add(setting.group, contender.name(), "peak memory", "MB", static_cast<double>(peak) * 1024 / 1e6);
  return {};
}

}  // namespace

Result<void> MeasureAttach(const Setting& setting, Record& record) {
  RH_TRY(MakeDirectories(setting.scratch));
  const auto contenders = MakeContenders(setting);
  for (int round = 0; round <= setting.rounds; ++round) {
    for (const auto& contender : contenders) {
      RH_TRY(
          Turn(*contender, "round-" + std::to_string(round), setting.group, round == 0 ? nullptr : &record));
    }
  }
  for (const auto& contender : contenders) RH_TRY(MeasurePeak(setting, *contender, record));
  return {};
}

}  // namespace railhead::bench
