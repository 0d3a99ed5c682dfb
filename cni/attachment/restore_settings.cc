#include "cni/attachment/restore_settings.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "netns/base/text.h"

namespace railhead::attachment {
namespace {

// Some settings block each other. A driver refuses fewer queues than the RSS table names. Some drivers refuse
// both while an XDP program is attached.
constexpr int kPasses = 4;

// Whether the list `now` has something that `before` does not have.
bool HasMore(const std::string& now, const std::string& before) {
  if (now.empty()) return false;
  const auto known = Split(before, ',');
  const auto elements = Split(now, ',');
  return std::ranges::any_of(elements, [&](const std::string& element) { return !Contains(known, element); });
}

class Restoration {
 public:
  Restoration(DeviceApi& devices, const Link& link, const DeviceState& before)
      : devices_(devices), link_(link), before_(before) {}

  Result<UnrestoredSettings> Run() {
    RH_TRY(Look());
    for (int pass = 0; pass < kPasses && !differing_.empty(); ++pass) {
      WriteAll();
      const auto last = differing_;
      RH_TRY(Look());
      if (differing_ == last) break;
    }
    UnrestoredSettings unrestored;
    for (const auto& [field, now] : differing_) {
      if (!Matters(*field, now)) continue;
      unrestored.fields.emplace_back(field->name);
      const auto refused = refused_.find(field);
      if (unrestored.reason.empty() && refused != refused_.end()) unrestored.reason = refused->second.message;
    }
    return unrestored;
  }

 private:
  Result<void> Look() {
    const DeviceState now = RH_TRY(devices_.Read(link_));
    differing_.clear();
    for (const DeviceField& field : DeviceFields()) {
      const std::string* was = before_.Find(field.name);
      if (was == nullptr) continue;
      const std::string* is = now.Find(field.name);
      if (is == nullptr || *is != *was)
        differing_.emplace(&field, is == nullptr ? std::nullopt : std::optional(*is));
    }
    return {};
  }

  void WriteAll() {
    refused_.clear();
    std::set<DeviceSource> sources;
    for (const auto& [field, now] : differing_) sources.insert(field->source);
    // A driver may refuse other settings while a program is attached. So the pod's program is removed first,
    // and the host's is attached last.
    const bool programs = sources.erase(DeviceSource::kXdp) > 0;
    if (programs) DetachPrograms();
    for (const DeviceSource source : sources) WriteSource(source);
    if (programs) WriteSource(DeviceSource::kXdp);
  }

  void DetachPrograms() {
    DeviceState none;
    for (const auto& [field, now] : differing_) {
      if (field->source == DeviceSource::kXdp && now && !now->empty()) none.values.emplace(field->name, "");
    }
    if (!none.values.empty()) (void)devices_.Write(link_, DeviceSource::kXdp, none);
  }

  void WriteSource(DeviceSource source) {
    DeviceState values;
    for (const auto& [field, now] : differing_) {
      if (field->source == source) values.values.emplace(field->name, *before_.Find(field->name));
    }
    if (devices_.Write(link_, source, values)) return;
    // The kernel refuses the whole message for one value.
    for (const auto& [field, now] : differing_) {
      if (field->source == source) WriteAlone(*field);
    }
  }

  void WriteAlone(const DeviceField& field) {
    DeviceState value;
    value.values.emplace(field.name, *before_.Find(field.name));
    auto written = devices_.Write(link_, field.source, value);
    if (!written) refused_.emplace(&field, std::move(written.error()));
  }

  [[nodiscard]] bool Matters(const DeviceField& field, const std::optional<std::string>& now) const {
    const auto refused = refused_.find(&field);
    switch (field.kind) {
      case DeviceFieldKind::kSetting:
        return true;
      case DeviceFieldKind::kReported:
        // If the driver cannot set it, the pod could not set it, either.
        return refused != refused_.end() && refused->second.sys_errno != EOPNOTSUPP;
      case DeviceFieldKind::kAttached:
        // railheadd may not call bpf(2) (manifests/seccomp), and the driver of a PF with VFs cannot be bound
        // again.
        if (!now && field.source == DeviceSource::kTcx) return false;
        return !now || HasMore(*now, *before_.Find(field.name));
    }
    return true;
  }

  DeviceApi& devices_;
  const Link& link_;
  const DeviceState& before_;
  // In the table's order, with the present value; nullopt: the driver no longer reports it.
  std::map<const DeviceField*, std::optional<std::string>> differing_;
  std::map<const DeviceField*, Error> refused_;
};

}  // namespace

Result<UnrestoredSettings> RestoreSettings(DeviceApi& devices, const Link& link, const DeviceState& before) {
  return Restoration(devices, link, before).Run();
}

std::string Describe(const UnrestoredSettings& unrestored) {
  const std::string fields = Join(unrestored.fields, ", ");
  return unrestored.reason.empty() ? fields : fields + " (" + unrestored.reason + ")";
}

}  // namespace railhead::attachment
