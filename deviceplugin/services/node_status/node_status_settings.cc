#include "deviceplugin/services/node_status/node_status_settings.h"

#include <nlohmann/json.hpp>

#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

constexpr int kMostRails = 256;  // a rail is one of 256 PFs
constexpr int kMostNodes = 1'000'000;

TaintSettings ReadTaintObject(JsonReader& reader, std::size_t rails) {
  TaintSettings settings;
  if (const auto effect = reader.String("effect")) {
    if (*effect != "NoSchedule" && *effect != "PreferNoSchedule" && *effect != "NoExecute")
      reader.Fail("effect", "'" + *effect + "' is not known", "NoSchedule, PreferNoSchedule or NoExecute");
    settings.effect = *effect;
  }
  if (const auto below = reader.Int("whenRailsBelow", 1, kMostRails)) {
    settings.when_rails_below = static_cast<int>(*below);
    if (static_cast<std::size_t>(*below) > rails) {
      reader.Fail("whenRailsBelow", "the fabric has only " + std::to_string(rails) + " rails",
                  "every node would have the taint for ever");
    }
  }
  reader.Close();
  return settings;
}

void ReadTaint(JsonReader& reader, std::size_t rails, IsolationSettings* settings) {
  const auto* value = reader.Raw("taint");
  if (value == nullptr) return;
  if (value->is_object()) {
    if (auto object = reader.Object("taint")) settings->taint = ReadTaintObject(*object, rails);
  } else if (value->is_boolean()) {
    if (value->get<bool>()) settings->taint.emplace();
    settings->no_taint = !value->get<bool>();
  } else {
    reader.Fail("taint", "is neither true, false nor an object", R"(for example {"whenRailsBelow": 7})");
  }
}

// As Kubernetes' IntOrString: 5 or "10%".
void ReadMaxUnavailable(JsonReader& reader, MaxUnavailable* most) {
  const auto* value = reader.Raw("maxUnavailable");
  if (value == nullptr) return;
  if (value->is_number_integer()) {
    if (const auto nodes = reader.Int("maxUnavailable", 1, kMostNodes)) *most = {static_cast<int>(*nodes), 0};
    return;
  }
  const std::string text = value->is_string() ? value->get<std::string>() : "";
  const auto percent = text.ends_with('%') ? ParseInt(text.substr(0, text.size() - 1)) : std::nullopt;
  if (!percent || *percent < 1 || *percent > 100) {
    return reader.Fail("maxUnavailable", "is neither a number of nodes nor a percentage",
                       R"(for example 5, or "10%"; 1 to 100 %)");
  }
  *most = {0, static_cast<int>(*percent)};
}

}  // namespace

Result<IsolationSettings> ParseIsolation(const std::string& text, const std::string& what, std::size_t rails,
                                         std::vector<Error>* all) {
  IsolationSettings settings;
  if (text.empty()) return settings;
  const JsonDocument document = RH_TRY(JsonDocument::Parse(R"({"isolation":)" + text + "}", what));
  JsonReader root = document.Root();
  if (auto reader = root.Object("isolation")) {
    settings.node_condition = reader->Bool("nodeCondition").value_or(false);
    ReadTaint(*reader, rails, &settings);
    settings.events = reader->Bool("events").value_or(false);
    ReadMaxUnavailable(*reader, &settings.max_unavailable);
    if (auto kubernetes = reader->Object("kubernetes")) settings.kubernetes = ReadKubeConfig(*kubernetes);
    reader->Close();
  }
  if (all != nullptr) *all = root.errors();
  RH_TRY(root.status());
  return settings;
}

}  // namespace railhead
