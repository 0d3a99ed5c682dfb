// One object of a document with its place, while it is translated.
// Ownership: borrows document and ledger. Threads: none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/tools/migrate/report.h"
#include "netns/base/text.h"

namespace railhead::migrate {

class Section {
 public:
  Section(const nlohmann::json& object, std::string at, KeyLedger* keys)
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
  [[nodiscard]] Section Inner(const std::string& key) const {
    static const nlohmann::json kNothing;
    const nlohmann::json* value = Find(key);
    return {value == nullptr ? kNothing : *value, Place(key), keys_};
  }
  void Say(const std::string& key, Fate fate, const std::string& what) const {
    keys_->Set(Place(key), fate, what);
  }
  // A key that the plugin does not have: it ignores it, railhead would refuse it.
  void SayUnknown(const std::string& key, const std::vector<std::string>& known) const {
    const auto nearest = Nearest(key, known);
    Say(key, Fate::kDecide,
        Text("type") + " does not know it and ignores it" +
            (nearest ? ": did you mean " + *nearest + "?" : "") + "; it is left out");
  }
  // Of all keys of which nothing was said.
  void SayRest(Fate fate, const std::string& what) const { keys_->SetRest(at_, fate, what); }

 private:
  const nlohmann::json* object_;
  std::string at_;
  KeyLedger* keys_;
};

}  // namespace railhead::migrate
