#include "deviceplugin/services/health/health_recorder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <utility>
#include <vector>

#include "deviceplugin/services/health/recording.h"
#include "netns/base/files.h"
#include "netns/base/node.h"
#include "netns/base/state_folder.h"

namespace railhead::health {
namespace {

using std::chrono::milliseconds;
using OrderedJson = nlohmann::ordered_json;

constexpr std::chrono::seconds kQuietWrites{60};
constexpr const char* kKeeping = "keeping what was observed";

// Names of network devices may contain any bytes.
std::string LineText(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

// Removes an incomplete last line, which a process wrote that was killed or had no space.
Result<void> RepairTail(const UniqueFd& file, std::size_t* size) {
  std::string text(*size, '\0');
  const auto got = ::pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) return FailSys(errno, "reading back");
  text.resize(static_cast<std::size_t>(got));
  const std::size_t whole = text.rfind('\n') + 1;  // npos + 1 is 0
  if (whole == *size) return {};
  if (::ftruncate(file.get(), static_cast<off_t>(whole)) != 0)
    return FailSys(errno, "cutting off half a line");
  *size = whole;
  return {};
}

}  // namespace

void HealthRecorder::Begin(HealthTime now, const HealthRules& rules, const HealthMonitor& monitor) {
  now_ = now.steady;
  said_ = false;
  if (!begun_ || full_) {
    const bool continues = begun_.has_value();
    if (!continues) begun_ = flushed_ = now.steady;
    rules_ = rules;
    Start(now, monitor, continues);
  }
  if (*rules_ == rules) return;
  rules_ = rules;
  // Their windows start again with the next reading.
  for (auto& [id, device] : written_) device.seen.counters.clear();
  const auto t = std::chrono::duration_cast<milliseconds>(now_ - *begun_);
  pending_ += LineText({{"t", t.count()}, {"health", HealthRulesAsJson(rules)}});
  said_ = urgent_ = true;
}

// Omits devices that begin Healthy, except PFs: new devices begin Healthy, too.
void HealthRecorder::Start(HealthTime now, const HealthMonitor& monitor, bool continues) {
  RecordedHeader header;
  if (node_.empty()) node_ = NodeName(root_).value_or("");
  header.node = node_;
  header.time = std::chrono::floor<milliseconds>(now.wall);
  header.t = std::chrono::duration_cast<milliseconds>(now_ - *begun_);
  header.continues = continues;
  header.rules = *rules_;
  if (!continues) known_.clear();
  for (DeviceHealth& device : monitor.All()) {
    known_.insert(device.id);
    if (!device.is_vf || !device.healthy) header.devices.push_back(std::move(device));
  }
  written_.clear();
  pending_ = HeaderLine(header);
  header_ = pending_.size();
  urgent_ = true;
}

void HealthRecorder::Put(std::string_view key, const std::string& id) {
  const auto t = std::chrono::duration_cast<milliseconds>(now_ - *begun_);
  pending_ += LineText({{"t", t.count()}, {"device", id}, {std::string(key), true}});
  said_ = urgent_ = true;
}

void HealthRecorder::Renew(const std::string& id) {
  Put("renewed", id);
}

void HealthRecorder::KeepOnly(const std::set<std::string>& ids) {
  std::vector<std::string> forgotten;
  std::set_difference(known_.begin(), known_.end(), ids.begin(), ids.end(), std::back_inserter(forgotten));
  for (const std::string& id : forgotten) {
    Put("forgotten", id);
    known_.erase(id);
    written_.erase(id);
  }
}

void HealthRecorder::PutDevice(RecordedDevice now) {
  const std::string id = now.subject.id;
  const auto [at, is_new] = written_.try_emplace(id, NewRecordedDevice(id));
  known_.insert(id);
  OrderedJson delta = DeviceDelta(at->second, now);
  at->second = std::move(now);
  if (delta.empty() && !is_new) return;
  const auto t = std::chrono::duration_cast<milliseconds>(now_ - *begun_);
  OrderedJson line = {{"t", t.count()}, {"device", id}};
  line.update(delta);
  pending_ += LineText(line);
  said_ = urgent_ = true;
}

void HealthRecorder::Observe(const HealthSubject& subject, const Observation& seen) {
  const auto known = written_.find(subject.id);
  PutDevice(WithSeen(known == written_.end() ? RecordedDevice{} : known->second, subject, seen));
}

void HealthRecorder::Miss(const HealthSubject& subject) {
  const auto known = written_.find(subject.id);
  RecordedDevice now = known == written_.end() ? RecordedDevice{} : known->second;
  now.subject = subject;
  now.unread = true;
  PutDevice(std::move(now));
}

Result<void> HealthRecorder::End(bool changed) {
  if (!said_) {
    const auto t = std::chrono::duration_cast<milliseconds>(now_ - *begun_);
    pending_ += LineText({{"t", t.count()}});
  }
  if (!urgent_ && !changed && now_ - flushed_ < kQuietWrites) return {};
  auto written = Write();
  pending_.clear();
  urgent_ = false;
  flushed_ = now_;
  if (written) return {};
  begun_.reset();
  full_ = whole_ = false;
  return Fail(Wrap(std::move(written.error()), kKeeping));
}

Result<void> HealthRecorder::Write() {
  const std::string path = RecordingPath(root_);
  RH_TRY(MakeStateFolderOf(root_, path));
  if (full_ && ::rename(path.c_str(), OldRecordingPath(root_).c_str()) != 0 && errno != ENOENT)
    return FailSys(errno, "renaming " + path);
  full_ = false;
  const UniqueFd file = RH_TRY(OpenOwnFile(path, O_RDWR | O_APPEND | O_CREAT, 0644));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return FailSys(errno, "looking at " + path);
  auto size = static_cast<std::size_t>(status.st_size);
  if (!whole_) RH_TRY_WRAP(RepairTail(file, &size), path);
  // Another program removed the file, and with it the header of these lines.
  if (size == 0 && !pending_.starts_with(R"({"version")"))
    return Fail(ErrorCode::kNotFound, path + " was removed", "railheadd starts a new file");
  const auto written = ::write(file.get(), pending_.data(), pending_.size());
  if (written < 0) return FailSys(errno, "writing " + path);
  if (static_cast<std::size_t>(written) != pending_.size()) return FailSys(ENOSPC, "writing " + path);
  whole_ = true;
  full_ = size + pending_.size() >= longest_ + header_;
  return {};
}

}  // namespace railhead::health
