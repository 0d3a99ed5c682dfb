#include "cni/state/attach_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <optional>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "netns/json/record_io.h"

namespace railhead {
namespace {

// 0: the file does not exist.
ino_t FileAt(const std::string& path, std::int64_t* size) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return 0;
  *size = status.st_size;
  return status.st_ino;
}

}  // namespace

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
    std::int64_t size = 0;
    if (::flock(fd->get(), LOCK_EX | LOCK_NB) == 0 && FileAt(path, &size) == status.st_ino)
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

AttachLogTail::AttachLogTail(const Root& root) : path_(paths::AttachLog(root)) {
  file_ = FileAt(path_, &place_);
}

Result<void> AttachLogTail::ReadOn(const std::string& path, std::vector<AttachTiming>* timings) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return errno == ENOENT ? Result<void>{} : FailSys(errno, "opening " + path);
  std::string text(2 * kMaxAttachLog, '\0');
  const ssize_t size = ::pread(fd.get(), text.data(), text.size(), place_);
  if (size < 0) return FailSys(errno, "reading " + path);
  text.resize(static_cast<std::size_t>(size));
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (auto timing = ParseAttachTiming(text.substr(begin, end - begin)))
      timings->push_back(*std::move(timing));
  }
  place_ += static_cast<std::int64_t>(begin);
  return {};
}

Result<std::vector<AttachTiming>> AttachLogTail::Next() {
  std::vector<AttachTiming> timings;
  std::int64_t size = 0;
  const ino_t now = FileAt(path_, &size);
  if (now != file_) {
    if (file_ != 0 && FileAt(path_ + ".1", &size) == file_) RH_TRY(ReadOn(path_ + ".1", &timings));
    file_ = now;
    place_ = 0;
  } else if (size < place_) {
    place_ = 0;  // another program truncated it
  }
  if (file_ != 0) RH_TRY(ReadOn(path_, &timings));
  return timings;
}

}  // namespace railhead
