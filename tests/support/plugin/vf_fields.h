// The VF settings of a network configuration, from the list of its fields, so that tests also try new fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cni/attachment/plugin_config_shape.h"

namespace railhead::testing {

using KeyAndField = std::pair<std::string, std::string>;

class VfFieldLister {
 public:
  template <typename C, typename M>
  void operator()(const char* key, std::optional<M> C::* /*member*/, const FieldRules& rules = {}) {
    if constexpr (std::is_same_v<M, bool>) {
      AddWord(key, rules.no);
      AddWord(key, rules.yes);
    } else if constexpr (std::is_same_v<M, MacAddress>) {
      AddWord(key, "02:aa:00:00:00:01");
    } else if constexpr (std::is_arithmetic_v<M>) {
      Add(key, std::to_string(rules.min + 1));
    } else {
      for (const auto& [word, value] : Names<M>::kAll) AddWord(key, word);
    }
  }
  template <const auto& kWords, auto kMember>
  void Form(const char* key, record::WordForm<kWords, kMember> /*form*/, const FieldRules& /*rules*/ = {}) {
    for (const auto& [word, value] : kWords) AddWord(key, word);
  }
  template <typename C, typename M, typename List>
  void Part(M C::* /*member*/, List list) {
    list(*this);
  }
  [[nodiscard]] std::vector<KeyAndField> Take() { return std::move(fields_); }

 private:
  void AddWord(const char* key, std::string_view word) { Add(key, "\"" + std::string(word) + "\""); }
  void Add(const std::string& key, const std::string& value) {
    fields_.emplace_back(key, "\"" + key + "\":" + value);
  }
  std::vector<KeyAndField> fields_;
};

// Each key with each of its words, or with one number.
inline std::vector<KeyAndField> VfFields() {
  VfFieldLister lister;
  Shape<attachment::PluginConfig>::ListVfSettings(lister);
  return lister.Take();
}

}  // namespace railhead::testing
