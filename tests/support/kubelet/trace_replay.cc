#include "tests/support/kubelet/trace_replay.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr int kUnavailable = 14;  // gRPC's

// Renames every device of `names`, also in keys and within texts.
Json Renamed(const Json& json, const std::map<std::string, std::string>& names) {
  std::string text = json.dump();
  for (const auto& [from, to] : names) {
    std::string result;
    std::size_t at = 0;
    for (auto next = text.find(from); next != std::string::npos; next = text.find(from, at)) {
      result.append(text, at, next - at).append(to);
      at = next + from.size();
    }
    text = result.append(text, at);
  }
  return Json::parse(text);
}

// Sorts lists and drops empty values, since proto3 JSON omits them.
Json Comparable(const Json& json) {
  if (json.is_array()) {
    std::vector<Json> items;
    items.reserve(json.size());
    for (const Json& item : json) items.push_back(Comparable(item));
    std::sort(items.begin(), items.end());
    return items;
  }
  if (!json.is_object()) return json;
  Json object = Json::object();
  for (const auto& [key, value] : json.items()) {
    const Json item = Comparable(value);
    if (item.is_null() || item == false || ((item.is_object() || item.is_array()) && item.empty())) continue;
    object[key] = item;
  }
  return object;
}

std::set<std::string> Listed(const TraceEvent& event) {
  const auto ids = IdsIn(Field(event.response, "devices"));
  return {ids.begin(), ids.end()};
}

bool IsList(const TraceEvent& event) {
  return event.from == "plugin" && event.call == "ListAndWatch";
}

}  // namespace

struct TraceReplay::Heard {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<TraceEvent> events;  // not expected yet
};

TraceReplay::TraceReplay(std::string directory, Host host, std::chrono::seconds patience)
    : host_(std::move(host)),
      patience_(patience),
      heard_(std::make_unique<Heard>()),
      kubelet_(std::move(directory), {.record = [heard = heard_.get()](TraceEvent event) {
                 const std::lock_guard<std::mutex> lock(heard->mutex);
                 heard->events.push_back(std::move(event));
                 heard->changed.notify_all();
               }}) {}
TraceReplay::~TraceReplay() = default;

Result<void> TraceReplay::Play(const Trace& trace) {
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    RH_TRY_WRAP(PlayEvent(trace.events[i]),
                "event " + std::to_string(i + 1) + ", " + trace.events[i].Title());
  }
  return {};
}

Result<void> TraceReplay::PlayEvent(const TraceEvent& event) {
  if (event.from == "node") {
    PlayNode(event);
    return {};
  }
  if (event.call == "StreamEnd" || event.call == "SocketRemoved") return {};
  // Nothing listened, so the call reached no one.
  if (event.call == "Register" && event.error && event.error->code == kUnavailable) return {};
  if (event.call == "KubeletStop") {
    kubelet_.Kill();
    return {};
  }
  if (event.call == "KubeletSocketCreated") {
    kubelet_.Kill();
    return kubelet_.Start();
  }
  if (IsList(event)) ChangeDevices(event);
  if (event.call == "GetPreferredAllocation" || event.call == "Allocate" ||
      event.call == "PreStartContainer") {
    TraceEvent call = event;
    call.request = Renamed(event.request, ours_[event.resource]);
    kubelet_.Say(call);
  }
  return Expect(event);
}

void TraceReplay::PlayNode(const TraceEvent& event) {
  if (event.call == "PluginStart") host_.start(event.plugin);
  if (event.call == "PluginStop") host_.stop(event.plugin);
  if (event.call == "PluginKill") host_.kill(event.plugin);
}

void TraceReplay::ChangeDevices(const TraceEvent& expected) {
  const auto ids = Listed(expected);
  const auto before = listed_.find(expected.resource);
  const bool changed = before != listed_.end() && before->second != ids;
  listed_[expected.resource] = ids;
  if (!changed) return;
  std::set<std::string> ours;
  for (const std::string& id : ids) ours.insert(ours_[expected.resource][id]);
  host_.set_devices(expected.resource, ours);
}

Result<void> TraceReplay::Expect(const TraceEvent& event) {
  std::unique_lock<std::mutex> lock(heard_->mutex);
  auto found = heard_->events.end();
  const auto look = [&] {
    found = std::find_if(heard_->events.begin(), heard_->events.end(), [&](const TraceEvent& seen) {
      return seen.from == event.from && seen.call == event.call && seen.resource == event.resource;
    });
    return found != heard_->events.end();
  };
  if (!heard_->changed.wait_for(lock, patience_, look)) return Fail(ErrorCode::kTimeout, "it has not come");
  const TraceEvent seen = *found;
  heard_->events.erase(found);
  lock.unlock();
  return Compare(event, seen);
}

void TraceReplay::LearnDevices(const TraceEvent& expected, const TraceEvent& seen) {
  if (!IsList(expected) || !ours_[expected.resource].empty()) return;
  const auto theirs = Listed(expected);
  const auto ours = Listed(seen);
  auto mine = ours.begin();
  for (const std::string& id : theirs) {
    if (mine != ours.end()) ours_[expected.resource][id] = *mine++;
  }
}

Result<void> TraceReplay::Compare(const TraceEvent& expected, const TraceEvent& seen) {
  LearnDevices(expected, seen);
  const auto code = [](const TraceEvent& event) { return event.error ? event.error->code : 0; };
  if (code(expected) != code(seen)) {
    return Fail(ErrorCode::kConflict, "status " + std::to_string(code(seen)) + " instead of " +
                                          std::to_string(code(expected)) +
                                          (seen.error ? ": " + seen.error->message : ""));
  }
  const Json wanted = Comparable(Renamed(expected.response, ours_[expected.resource]));
  const Json given = Comparable(seen.response);
  if (wanted != given)
    return Fail(ErrorCode::kConflict, "the answer is " + given.dump() + " instead of " + wanted.dump());
  if (expected.call != "Register") return {};
  const Json asked = Comparable(expected.request);
  const Json asks = Comparable(seen.request);
  if (asked == asks) return {};
  return Fail(ErrorCode::kConflict, "the request is " + asks.dump() + " instead of " + asked.dump());
}

}  // namespace railhead::testing
