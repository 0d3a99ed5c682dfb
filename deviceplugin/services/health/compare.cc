#include "deviceplugin/services/health/compare.h"

#include <algorithm>
#include <map>
#include <utility>

namespace railhead {
namespace {

using std::chrono::milliseconds;

struct DeviceSpans {
  std::string pf;
  bool is_vf = false;
  std::vector<UnhealthySpan> spans;  // in the order of time, apart from one another
};
using SpansByDevice = std::map<std::string, DeviceSpans>;

SpansByDevice SpansOf(const Replayed& replayed) {
  SpansByDevice all;
  for (const DeviceHealth& device : replayed.begin) {
    if (!device.healthy) all[device.id] = {device.pf, device.is_vf, {{milliseconds(0), {}, device.reasons}}};
  }
  for (const ReplayedRound& round : replayed.rounds) {
    for (const HealthChange& change : round.changes) {
      if (!change.flipped) continue;
      DeviceSpans& of = all[change.device];
      of.pf = change.pf;
      of.is_vf = change.is_vf;
      if (!change.healthy) {
        of.spans.push_back({round.at, {}, change.reasons});
      } else if (!of.spans.empty()) {
        of.spans.back().to = round.at;
      }
    }
  }
  return all;
}

// Also the same moment: one that was Unhealthy before and is well at the first look.
bool Meet(const UnhealthySpan& a, const UnhealthySpan& b) {
  if (a.SameTimes(b)) return true;
  return a.from < b.to.value_or(milliseconds::max()) && b.from < a.to.value_or(milliseconds::max());
}

using SpanPair = std::pair<std::optional<UnhealthySpan>, std::optional<UnhealthySpan>>;

// What meets is one and the same trouble, told at other times.
std::vector<SpanPair> PairsOf(const std::vector<UnhealthySpan>& first,
                              const std::vector<UnhealthySpan>& second) {
  std::vector<SpanPair> pairs;
  auto a = first.begin();
  auto b = second.begin();
  while (a != first.end() || b != second.end()) {
    if (a != first.end() && b != second.end() && Meet(*a, *b)) {
      if (!a->SameTimes(*b)) pairs.emplace_back(*a, *b);
      ++a;
      ++b;
    } else if (b == second.end() || (a != first.end() && a->from <= b->from)) {
      pairs.emplace_back(*a++, std::nullopt);
    } else {
      pairs.emplace_back(std::nullopt, *b++);
    }
  }
  return pairs;
}

bool SameTimes(const std::optional<UnhealthySpan>& a, const std::optional<UnhealthySpan>& b) {
  return a.has_value() == b.has_value() && (!a || a->SameTimes(*b));
}

bool IsAll(const std::optional<UnhealthySpan>& span, const std::string& device) {
  return !span || std::all_of(span->reasons.begin(), span->reasons.end(),
                              [&](const HealthReason& reason) { return reason.device == device; });
}

milliseconds Begin(const SpanDifference& difference) {
  const auto never = milliseconds::max();
  return std::min(difference.before ? difference.before->from : never,
                  difference.after ? difference.after->from : never);
}

void Add(const std::string& id, const DeviceSpans& of, SpanPair pair, std::vector<SpanDifference>* all) {
  const bool by_pf = of.is_vf && IsAll(pair.first, of.pf) && IsAll(pair.second, of.pf);
  if (!by_pf) {
    all->push_back({id, true, 0, std::move(pair.first), std::move(pair.second)});
    return;
  }
  const auto same = std::find_if(all->begin(), all->end(), [&](const SpanDifference& other) {
    return other.device == of.pf && SameTimes(other.before, pair.first) &&
           SameTimes(other.after, pair.second);
  });
  if (same != all->end()) {
    ++same->vfs;
  } else {
    all->push_back({of.pf, false, 1, std::move(pair.first), std::move(pair.second)});
  }
}

}  // namespace

std::vector<SpanDifference> Compare(const Replayed& first, const Replayed& second) {
  const SpansByDevice before = SpansOf(first);
  const SpansByDevice after = SpansOf(second);
  SpansByDevice who = before;
  who.insert(after.begin(), after.end());
  std::vector<SpanDifference> all;
  // PFs first: their VFs join them.
  for (const bool vfs : {false, true}) {
    for (const auto& [id, of] : who) {
      if (of.is_vf != vfs) continue;
      const auto spans = [&id = id](const SpansByDevice& these) {
        const auto at = these.find(id);
        return at == these.end() ? std::vector<UnhealthySpan>{} : at->second.spans;
      };
      for (SpanPair& pair : PairsOf(spans(before), spans(after))) Add(id, of, std::move(pair), &all);
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const SpanDifference& a, const SpanDifference& b) { return Begin(a) < Begin(b); });
  return all;
}

}  // namespace railhead
