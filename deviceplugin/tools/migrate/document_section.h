// DocumentSection: one object of a document and its place, during the translation.
// Ownership: borrows document and outcomes. Threads: none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/tools/migrate/key_outcomes.h"
#include "netns/base/text.h"

namespace railhead::migrate {

class DocumentSection {
 public:
  DocumentSection(const nlohmann::json& object, std::string at, KeyOutcomes* keys)
      : object_(&object), at_(std::move(at)), keys_(keys) {}

  [[nodiscard]] const nlohmann::json& object() const { return *object_; }
  [[nodiscard]] const std::string& at() const { return at_; }
  [[nodiscard]] std::string Place(const std::string& key) const { return Below(at_, key); }
  // nullptr: absent or null.
  [[nodiscard]] const nlohmann::json* Find(const std::string& key) const {
    if (!object_->is_object()) return nullptr;
    const auto found = object_->find(key);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] std::string Text(const std::string& key) const {
    const nlohmann::json* value = Find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }
  [[nodiscard]] DocumentSection Inner(const std::string& key) const {
    static const nlohmann::json kNothing;
    const nlohmann::json* value = Find(key);
    return {value == nullptr ? kNothing : *value, Place(key), keys_};
  }
  void SetOutcome(const std::string& key, KeyOutcome outcome, const std::string& what) const {
    keys_->Set(Place(key), outcome, what);
  }
  // A key that the plugin does not have. The plugin ignores it, but railhead would refuse it.
  void MarkUnknown(const std::string& key, const std::vector<std::string>& known) const {
    const auto nearest = Nearest(key, known);
    SetOutcome(key, KeyOutcome::kNeedsDecision,
               Text("type") + " does not know it and ignores it" +
                   (nearest ? ": did you mean " + *nearest + "?" : "") + "; it is left out");
  }
  // For all keys whose outcome is not set.
  void SetRemaining(KeyOutcome outcome, const std::string& what) const {
    keys_->SetRemaining(at_, outcome, what);
  }

 private:
  const nlohmann::json* object_;
  std::string at_;
  KeyOutcomes* keys_;
};

}  // namespace railhead::migrate
