#include "cni/state/attach_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>

#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

using Json = nlohmann::ordered_json;

std::string LineOf(const AttachTiming& timing) {
  Json json;
  json["time"] = static_cast<std::int64_t>(std::time(nullptr));
  json["network"] = timing.key.network;
  json["containerId"] = timing.key.container_id;
  json["ifname"] = timing.key.ifname;
  json["links"] = timing.links;
  if (!timing.error.empty()) json["error"] = timing.error;
  std::chrono::microseconds total{0};
  json["phasesUs"] = Json::object();
  for (const auto& [phase, took] : timing.phases) {
    json["phasesUs"][phase] = took.count();
    total += took;
  }
  json["totalUs"] = total.count();
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void AppendToAttachLog(const Root& root, const std::string& line) {
  const std::string path = paths::AttachLog(root);
  auto fd = OpenOwnFile(path, O_WRONLY | O_APPEND | O_CREAT);
  if (!fd) return;
  struct stat status {};
  if (::fstat(fd->get(), &status) == 0 && static_cast<std::size_t>(status.st_size) > kMaxAttachLog) {
    // Two at once: the older half goes early, and nothing else.
    (void)::rename(path.c_str(), (path + ".1").c_str());
    fd = OpenOwnFile(path, O_WRONLY | O_APPEND | O_CREAT);
    if (!fd) return;
  }
  [[maybe_unused]] const auto written = ::write(fd->get(), line.data(), line.size());
}

std::optional<AttachTiming> ParseAttachTiming(const std::string& line) {
  const auto document = JsonDocument::Parse(line, "attach log");
  if (!document) return std::nullopt;
  JsonReader reader = document->Root();
  AttachTiming timing;
  timing.key = {reader.RequiredString("network"), reader.RequiredString("containerId"),
                reader.RequiredString("ifname")};
  timing.links = static_cast<std::size_t>(reader.Int("links", 0, INT32_MAX).value_or(0));
  timing.error = reader.String("error").value_or("");
  auto phases = reader.Object("phasesUs");
  if (!phases) return std::nullopt;
  for (const auto& phase : phases->Keys()) {
    timing.phases.emplace_back(phase, phases->Int(phase, 0, INT64_MAX).value_or(0));
  }
  if (!reader.status()) return std::nullopt;
  return timing;
}

void LogAttachTiming(const Root& root, const AttachTiming& timing) {
  AppendToAttachLog(root, LineOf(timing));
}

void LogRebind(const Root& root, const AttachmentKey& key, const std::string& device,
               const std::string& why) {
  Json json;
  json["time"] = static_cast<std::int64_t>(std::time(nullptr));
  json["network"] = key.network;
  json["containerId"] = key.container_id;
  json["ifname"] = key.ifname;
  json["device"] = device;
  json["reboundFor"] = why;
  AppendToAttachLog(root, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
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

namespace {

// 0: there is no such file.
ino_t FileAt(const std::string& path, std::int64_t* size) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return 0;
  *size = status.st_size;
  return status.st_ino;
}

}  // namespace

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
    place_ = 0;  // cut by somebody
  }
  if (file_ != 0) RH_TRY(ReadOn(path_, &timings));
  return timings;
}

}  // namespace railhead
