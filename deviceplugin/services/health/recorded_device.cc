#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "deviceplugin/services/health/monitor.h"
#include "deviceplugin/services/health/recording.h"
#include "deviceplugin/services/health/state_file.h"
#include "netns/base/text.h"

namespace railhead::health {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::int64_t kManyFunctions = 65536;
constexpr std::size_t kMostCounters = 256;

// The reader's integers end there, and no counter that counts from 0 gets so far.
std::int64_t Shown(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, INT64_MAX));
}

template <typename T>
void Put(const char* key, const T& before, const T& now, OrderedJson* json) {
  if (before != now) (*json)[key] = now;
}

OrderedJson LinkDelta(const std::optional<ObservedLink>& before, const std::optional<ObservedLink>& now) {
  if (!now) return before ? OrderedJson(false) : OrderedJson();
  const ObservedLink base = before.value_or(ObservedLink{});
  OrderedJson json;
  Put("netdev", base.netdev, now->netdev, &json);
  Put("up", base.admin_up, now->admin_up, &json);
  Put("carrier", base.carrier, now->carrier, &json);
  Put("state", base.operstate, now->operstate, &json);
  if (json.is_null() && !before) return OrderedJson::object();
  return json;
}

OrderedJson PortDelta(const std::optional<ObservedPort>& before, const std::optional<ObservedPort>& now) {
  if (!now) return before ? OrderedJson(false) : OrderedJson();
  const ObservedPort base = before.value_or(ObservedPort{});
  OrderedJson json;
  Put("ibdev", base.ibdev, now->ibdev, &json);
  if (base.state != now->state) json["state"] = NameOf(now->state);
  if (json.is_null() && !before) return OrderedJson::object();
  return json;
}

OrderedJson RailJson(const std::optional<ObservedRail>& rail) {
  if (!rail) return false;
  OrderedJson json = {{"state", NameOf(rail->state)}};
  if (!rail->because.empty()) json["because"] = rail->because;
  return json;
}

OrderedJson DrainJson(const std::optional<Drain>& drain) {
  if (!drain) return false;
  return {{"name", drain->name}, {"reason", drain->reason}, {"since", FormatTime(drain->since)}};
}

ObservedCounter* FindCounter(std::vector<ObservedCounter>* counters, HealthRule rule, std::string_view name) {
  const auto at = std::ranges::find_if(*counters, [&](const ObservedCounter& counter) {
    return counter.rule == rule && counter.name == name;
  });
  return at == counters->end() ? nullptr : &*at;
}

OrderedJson CountersDelta(std::vector<ObservedCounter> before, const std::vector<ObservedCounter>& now) {
  OrderedJson json;
  for (const ObservedCounter& counter : now) {
    const ObservedCounter* known = FindCounter(&before, counter.rule, counter.name);
    if (known != nullptr && Shown(known->value) == Shown(counter.value)) continue;
    json[std::string(NameOf(counter.rule))][counter.name] = Shown(counter.value);
  }
  return json;
}

bool IsFalse(JsonReader* reader, const char* key) {
  const auto* raw = reader->Raw(key);
  return raw != nullptr && raw->is_boolean() && !raw->get<bool>();
}

void ReadLinkDelta(JsonReader* line, std::optional<ObservedLink>* link) {
  if (IsFalse(line, "link")) return link->reset();
  auto object = line->Object("link");
  if (!object) return;
  ObservedLink now = link->value_or(ObservedLink{});
  now.netdev = object->String("netdev").value_or(now.netdev);
  now.admin_up = object->Bool("up").value_or(now.admin_up);
  now.carrier = object->Bool("carrier").value_or(now.carrier);
  now.operstate = object->String("state").value_or(now.operstate);
  object->Close();
  *link = std::move(now);
}

void ReadPortDelta(JsonReader* line, std::optional<ObservedPort>* port) {
  if (IsFalse(line, "port")) return port->reset();
  auto object = line->Object("port");
  if (!object) return;
  ObservedPort now = port->value_or(ObservedPort{});
  now.ibdev = object->String("ibdev").value_or(now.ibdev);
  if (const auto word = object->String("state")) {
    const auto state = PortStateNamed(*word);
    if (!state) object->Fail("state", "'" + *word + "' is no state of a port", "ACTIVE, DOWN, INIT, ARMED");
    now.state = state.value_or(now.state);
  }
  object->Close();
  *port = std::move(now);
}

void ReadCountersDelta(JsonReader* line, std::vector<ObservedCounter>* counters) {
  auto rules = line->Object("counters");
  if (!rules) return;
  for (const std::string& key : rules->Keys()) {
    const auto rule = FromWord<HealthRule>(key);
    if (!rule) {
      rules->Fail(key, "is no rule of health");
      return;
    }
    auto values = rules->Object(key);
    if (!values) return;
    for (const std::string& name : values->Keys()) {
      const auto value = static_cast<std::uint64_t>(values->Int(name, 0, INT64_MAX).value_or(0));
      if (ObservedCounter* known = FindCounter(counters, *rule, name); known != nullptr) {
        known->value = value;
      } else {
        counters->push_back({*rule, name, value});
      }
      if (counters->size() > kMostCounters) {
        return values->Fail(name, "more than " + std::to_string(kMostCounters) + " counters of one device");
      }
    }
  }
}

void ReadObservedRail(JsonReader* line, std::optional<ObservedRail>* rail) {
  if (IsFalse(line, "rail")) return rail->reset();
  auto object = line->Object("rail");
  if (!object) return;
  ObservedRail now;
  const std::string word = object->RequiredString("state");
  const auto state = RailStateNamed(word);
  if (!state && !word.empty())
    object->Fail("state", "'" + word + "' is no state of a rail", "unknown, alive, impaired, dead");
  now.state = state.value_or(now.state);
  now.because = object->String("because").value_or("");
  object->Close();
  *rail = std::move(now);
}

void ReadDrained(JsonReader* line, const std::string& id, std::optional<Drain>* drained) {
  if (IsFalse(line, "drained")) return drained->reset();
  auto object = line->Object("drained");
  if (!object) return;
  Drain now;
  now.device = id;
  now.name = object->String("name").value_or(id);
  now.reason = object->String("reason").value_or("");
  if (const auto since = object->String("since")) {
    const auto time = ParseTime(*since);
    if (!time) object->Fail("since", "is no time of the form 2026-03-01T12:00:00Z");
    now.since = time.value_or(now.since);
  }
  object->Close();
  *drained = std::move(now);
}

void ReadNumvfs(JsonReader* line, std::optional<int>* count) {
  if (IsFalse(line, "numvfs")) return count->reset();
  if (const auto value = line->Int("numvfs", 0, kManyFunctions)) *count = static_cast<int>(*value);
}

int ReadCount(JsonReader* line, const char* key, int before) {
  return static_cast<int>(line->Int(key, 0, kManyFunctions).value_or(before));
}

}  // namespace

RecordedDevice NewRecordedDevice(const std::string& id) {
  RecordedDevice device;
  device.subject.id = device.subject.pf_id = id;
  return device;
}

OrderedJson DeviceDelta(const RecordedDevice& before, const RecordedDevice& now) {
  OrderedJson json = OrderedJson::object();
  // All that there is, by name: what is added to these and not recorded would not compile.
  const auto& [id, is_vf, pf_id, pf_name, vf_count, in_use, lost_vfs, lost_with_pf] = now.subject;
  const auto& [present, bound, link, port, numvfs, counters, failed_reporters, rail, drained, not_ready] =
      now.seen;
  Put("pf", before.subject.pf_id, pf_id, &json);
  Put("pfName", before.subject.pf_name, pf_name, &json);
  Put("vfs", before.subject.vf_count, vf_count, &json);
  Put("inUse", before.subject.in_use, in_use, &json);
  Put("lostVfs", before.subject.lost_vfs, lost_vfs, &json);
  Put("lostWithPf", before.subject.lost_with_pf, lost_with_pf, &json);
  Put("unread", before.unread, now.unread, &json);
  Put("present", before.seen.present, present, &json);
  Put("bound", before.seen.bound, bound, &json);
  if (auto delta = LinkDelta(before.seen.link, link); !delta.is_null()) json["link"] = std::move(delta);
  if (auto delta = PortDelta(before.seen.port, port); !delta.is_null()) json["port"] = std::move(delta);
  if (before.seen.vf_count != numvfs) json["numvfs"] = numvfs ? OrderedJson(*numvfs) : OrderedJson(false);
  if (auto delta = CountersDelta(before.seen.counters, counters); !delta.is_null())
    json["counters"] = std::move(delta);
  Put("reporters", before.seen.failed_reporters, failed_reporters, &json);
  if (before.seen.rail != rail) json["rail"] = RailJson(rail);
  if (before.seen.drained != drained) json["drained"] = DrainJson(drained);
  Put("notReady", before.seen.not_ready, not_ready, &json);
  return json;
}

RecordedDevice WithSeen(RecordedDevice before, const HealthSubject& subject, const Observation& seen) {
  RecordedDevice now{subject, seen, false};
  now.seen.counters = std::move(before.seen.counters);
  for (const ObservedCounter& counter : seen.counters) {
    if (ObservedCounter* known = FindCounter(&now.seen.counters, counter.rule, counter.name);
        known != nullptr) {
      known->value = counter.value;
    } else {
      now.seen.counters.push_back(counter);
    }
  }
  return now;
}

void ApplyDelta(JsonReader* line, RecordedDevice* device) {
  HealthSubject& subject = device->subject;
  subject.pf_id = line->String("pf").value_or(subject.pf_id);
  subject.is_vf = subject.pf_id != subject.id;
  subject.pf_name = line->String("pfName").value_or(subject.pf_name);
  subject.vf_count = ReadCount(line, "vfs", subject.vf_count);
  subject.in_use = line->Bool("inUse").value_or(subject.in_use);
  subject.lost_vfs = ReadCount(line, "lostVfs", subject.lost_vfs);
  subject.lost_with_pf = line->Bool("lostWithPf").value_or(subject.lost_with_pf);
  device->unread = line->Bool("unread").value_or(device->unread);
  Observation& seen = device->seen;
  seen.present = line->Bool("present").value_or(seen.present);
  seen.bound = line->Bool("bound").value_or(seen.bound);
  ReadLinkDelta(line, &seen.link);
  ReadPortDelta(line, &seen.port);
  ReadNumvfs(line, &seen.vf_count);
  ReadCountersDelta(line, &seen.counters);
  ReadObservedRail(line, &seen.rail);
  ReadDrained(line, subject.id, &seen.drained);
  seen.not_ready = line->String("notReady").value_or(seen.not_ready);
  if (auto reporters = line->Strings("reporters")) seen.failed_reporters = *std::move(reporters);
}

}  // namespace railhead::health
