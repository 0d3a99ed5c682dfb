#include "deviceplugin/services/health/recorded_device.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "deviceplugin/services/health/judge.h"
#include "netns/base/result.h"
#include "netns/json/record_io.h"

namespace railhead::health {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr FieldRules kFunctions{.min = 0, .max = 65536};
constexpr std::size_t kMostCounters = 256;

ObservedCounter* FindCounter(std::vector<ObservedCounter>* counters, HealthRule rule, std::string_view name) {
  const auto at = std::ranges::find_if(*counters, [&](const ObservedCounter& counter) {
    return counter.rule == rule && counter.name == name;
  });
  return at == counters->end() ? nullptr : &*at;
}

// A drain in the line of its device.
struct LineDrain : Drain {};

// A part that a device may lack; false stands for an absent part. `kOver`: a line has only the part's
// changes.
template <auto kMember, typename Line, bool kOver = false>
struct PartForm {
  static void Read(const JsonValue& json, Observation& seen) {
    auto& part = seen.*kMember;
    if (*json.raw() == false) return part.reset();
    if constexpr (record::IsRecord<Line>) {
      Line now{};
      if (kOver && part) now = Line{*part};
      if (record::ReadObject(json, now, true)) part = std::move(now);
    } else if (const auto now = record::ReadValue<Line>(json, kFunctions, true)) {
      part = *now;
    }
  }
  static OrderedJson Write(const Observation& seen) {
    const auto& part = seen.*kMember;
    return part ? OrderedJson(ToJson(Line{*part})) : OrderedJson(false);
  }
};

// By rule and name.
struct CountersForm {
  template <typename T>
  using ByName = std::vector<std::pair<std::string, T>>;

  static void Read(const JsonValue& json, Observation& seen) {
    const auto rules = record::ReadValue<ByName<ByName<std::int64_t>>>(json, {.min = 0}, true);
    if (!rules) return;
    for (const auto& [word, values] : *rules) {
      const auto rule = FromWord<HealthRule>(word);
      if (!rule) return json.FailWithin(PointerOf(word), "is not a health rule");
      for (const auto& [name, value] : values) {
        ObservedCounter* counter = FindCounter(&seen.counters, *rule, name);
        if (counter == nullptr) counter = &seen.counters.emplace_back(ObservedCounter{*rule, name, 0});
        counter->value = static_cast<std::uint64_t>(value);
      }
    }
    if (seen.counters.size() > kMostCounters)
      json.Fail("more than " + std::to_string(kMostCounters) + " counters of one device");
  }
  static OrderedJson Write(const Observation& seen) {
    OrderedJson rules;
    for (const ObservedCounter& counter : seen.counters) {
      // The reader's integers end there, and no counter that counts from 0 gets so far.
      rules[std::string(NameOf(counter.rule))][counter.name] =
          std::min<std::uint64_t>(counter.value, std::numeric_limits<std::int64_t>::max());
    }
    return rules;
  }
};

}  // namespace
}  // namespace railhead::health

template <>
struct railhead::Shape<railhead::health::ObservedLink> {
  using T = health::ObservedLink;
  static void List(auto& f) {
    f("netdev", &T::netdev);
    f("up", &T::admin_up);
    f("carrier", &T::carrier);
    f("state", &T::operstate);
  }
};

template <>
struct railhead::Shape<railhead::health::ObservedPort> {
  using T = health::ObservedPort;
  static void List(auto& f) {
    f("ibdev", &T::ibdev);
    f.Form("state", record::WordForm<health::kPortStates, &T::state>{});
  }
};

template <>
struct railhead::Shape<railhead::health::LineDrain> {
  using T = health::LineDrain;
  static void List(auto& f) {
    f("name", &T::name);
    f("reason", &T::reason);
    f("since", &T::since);
  }
};

template <>
struct railhead::Shape<railhead::health::RecordedDevice> {
  using T = health::RecordedDevice;
  static void List(auto& f) {
    using health::HealthSubject;
    using health::Observation;
    using health::PartForm;
    // Names every member: a new member that is not recorded does not compile.
    [[maybe_unused]] const auto& [id, is_vf, pf_id, pf_name, vf_count, in_use, lost_vfs, lost_with_pf] =
        HealthSubject{};
    [[maybe_unused]] const auto& [answers, present, bound, link, port, numvfs, counters, reporters, drained,
                                  not_ready] = Observation{};
    f.Part(&T::subject, [](auto& subject) {
      subject("pf", &HealthSubject::pf_id);
      subject("pfName", &HealthSubject::pf_name);
      subject("vfs", &HealthSubject::vf_count, health::kFunctions);
      subject("inUse", &HealthSubject::in_use);
      subject("lostVfs", &HealthSubject::lost_vfs, health::kFunctions);
      subject("lostWithPf", &HealthSubject::lost_with_pf);
    });
    f("unread", &T::unread);
    f.Part(&T::seen, [](auto& seen) {
      seen("answers", &Observation::answers);
      seen("present", &Observation::present);
      seen("bound", &Observation::bound);
      seen.Form("link", PartForm<&Observation::link, health::ObservedLink, true>{});
      seen.Form("port", PartForm<&Observation::port, health::ObservedPort, true>{});
      seen.Form("numvfs", PartForm<&Observation::vf_count, int>{});
      seen.Form("counters", health::CountersForm{});
      seen("reporters", &Observation::failed_reporters);
      seen.Foreign("rail");  // of earlier versions: probes no longer take a device out of use
      seen.Form("drained", PartForm<&Observation::drained, health::LineDrain>{});
      seen("notReady", &Observation::not_ready);
    });
  }
  static void Complete(T& device) {
    device.subject.is_vf = device.subject.pf_id != device.subject.id;
    auto& drained = device.seen.drained;
    if (!drained) return;
    drained->device = device.subject.id;
    if (drained->name.empty()) drained->name = drained->device;
  }
};

namespace railhead::health {
namespace {

// The fields of `now` that differ from `before`. `now` may lack fields of `before`.
OrderedJson Differences(const OrderedJson& before, const OrderedJson& now) {
  OrderedJson found = OrderedJson::object();
  for (const auto& [key, value] : now.items()) {
    const auto at = before.find(key);
    if (at == before.end() || !at->is_object() || !value.is_object()) {
      if (at == before.end() || *at != value) found[key] = value;
    } else if (auto within = Differences(*at, value); !within.empty()) {
      found[key] = std::move(within);
    }
  }
  return found;
}

}  // namespace

RecordedDevice NewRecordedDevice(const std::string& id) {
  RecordedDevice device;
  device.subject.id = device.subject.pf_id = id;
  return device;
}

OrderedJson DeviceDelta(const RecordedDevice& before, const RecordedDevice& now) {
  const OrderedJson all = ToJson(now);
  const OrderedJson old = ToJson(before);
  // For a new link or port, a line has the differences from the default.
  RecordedDevice from = before;
  if (!from.seen.link) from.seen.link.emplace();
  if (!from.seen.port) from.seen.port.emplace();
  // For drains, a line has the whole part.
  from.seen.drained.reset();
  const OrderedJson base = ToJson(from);
  OrderedJson json = OrderedJson::object();
  for (const auto& [key, value] : all.items()) {
    const OrderedJson known = old.value(key, OrderedJson());
    if (value == known) continue;
    const OrderedJson usual = base.value(key, OrderedJson());
    OrderedJson difference = value.is_object() && usual.is_object() ? Differences(usual, value) : value;
    if (!difference.empty() || !known.is_object()) json[key] = std::move(difference);
  }
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
  record::ReadFields(*device, *line, true, false);
}

}  // namespace railhead::health
