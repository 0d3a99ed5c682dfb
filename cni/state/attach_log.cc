#include "cni/state/attach_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "cni/state/paths.h"
#include "netns/base/text.h"
#include "netns/json/record_io.h"

namespace railhead {
void AppendToAttachLog(const Root& root, const nlohmann::ordered_json& record) {
  nlohmann::ordered_json timed{{"time", static_cast<std::int64_t>(std::time(nullptr))}};
  timed.update(record);
  const std::string line = record::Dump(timed) + "\n";
  const std::string path = paths::AttachLog(root);
  auto fd = OpenOwnFile(path, O_WRONLY | O_APPEND | O_CREAT);
  if (!fd) return;
  struct stat status {};
  if (::fstat(fd->get(), &status) == 0 && static_cast<std::size_t>(status.st_size) > kMaxAttachLog) {
    // Of several processes one renames it: the others would replace the older log by one that has just begun.
    struct stat there {};
    if (::flock(fd->get(), LOCK_EX | LOCK_NB) == 0 && ::stat(path.c_str(), &there) == 0 &&
        there.st_ino == status.st_ino)
      (void)::rename(path.c_str(), (path + ".1").c_str());
    fd = OpenOwnFile(path, O_WRONLY | O_APPEND | O_CREAT);
    if (!fd) return;
  }
  [[maybe_unused]] const auto written = ::write(fd->get(), line.data(), line.size());
}

std::optional<AttachTiming> ParseAttachTiming(const std::string& line) {
  auto timing = ParseRecord<AttachTiming>(line, "attach log");
  return timing ? std::optional(*std::move(timing)) : std::nullopt;
}

void LogAttachTiming(const Root& root, const AttachTiming& timing) {
  AppendToAttachLog(root, ToJson(timing));
}

void LogRebind(const Root& root, const AttachmentKey& key, const std::string& device,
               const std::string& why) {
  nlohmann::ordered_json json = ToJson(key);
  json["device"] = device;
  json["reboundFor"] = why;
  AppendToAttachLog(root, json);
}

Result<std::vector<AttachTiming>> ReadAttachTimings(const Root& root) {
  std::vector<AttachTiming> timings;
  for (const char* suffix : {".1", ""}) {
    const auto text = RH_TRY(ReadFile(paths::AttachLog(root) + suffix));
    for (const auto& line : Split(text.value_or(""), '\n')) {
      if (line.empty()) continue;
      if (auto timing = ParseAttachTiming(line); timing) timings.push_back(std::move(*timing));
    }
  }
  return timings;
}

}  // namespace railhead
