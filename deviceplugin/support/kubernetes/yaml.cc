#include "deviceplugin/support/kubernetes/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "netns/base/text.h"
#include "netns/json/record_forms.h"

namespace railhead {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 20;
// A few aliases can stand for any number of nodes.
constexpr int kMostNodes = 20000;

class Converter {
 public:
  // nullopt: too deep, or too many nodes.
  std::optional<Json> Convert(const YAML::Node& node, int depth) {
    if (depth > kDeepest || ++nodes_ > kMostNodes) return std::nullopt;
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Json(nullptr);
      case YAML::NodeType::Scalar:
        return Scalar(node);
      case YAML::NodeType::Sequence:
        return Sequence(node, depth);
      case YAML::NodeType::Map:
        return Map(node, depth);
    }
    return std::nullopt;
  }

 private:
  static Json Scalar(const YAML::Node& node) {
    const bool is_quoted = node.Tag() == "!";
    if (!is_quoted && node.Scalar() == "true") return true;
    if (!is_quoted && node.Scalar() == "false") return false;
    return node.Scalar();
  }

  std::optional<Json> Sequence(const YAML::Node& node, int depth) {
    Json list = Json::array();
    for (const YAML::Node& item : node) {
      auto converted = Convert(item, depth + 1);
      if (!converted) return std::nullopt;
      list.push_back(std::move(*converted));
    }
    return list;
  }

  std::optional<Json> Map(const YAML::Node& node, int depth) {
    Json object = Json::object();
    for (const auto& item : node) {
      auto converted = Convert(item.second, depth + 1);
      if (!converted) return std::nullopt;
      object[item.first.Scalar()] = std::move(*converted);
    }
    return object;
  }

  int nodes_ = 0;
};

std::vector<YAML::Node> OnlyOne(const std::string& yaml) {
  return {YAML::Load(yaml)};
}

// At a token that cannot begin anything, such as a ',' outside of brackets, yaml-cpp does not advance. It
// reports empty documents without end.
class Progress final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_) throw YAML::ParserException(mark, "nothing can begin here");
    last_ = mark.pos;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

 private:
  int last_ = -1;
};

std::vector<YAML::Node> All(const std::string& yaml) {
  std::istringstream stream(yaml);
  YAML::Parser parser(stream);
  Progress progress;
  while (parser.HandleNextDocument(progress)) {
  }
  return YAML::LoadAll(yaml);
}

template <typename Load>
Result<std::vector<std::string>> Convert(const std::string& yaml, const std::string& what, Load load) {
  try {
    Converter converter;
    std::vector<std::string> texts;
    for (const YAML::Node& document : load(yaml)) {
      const auto json = converter.Convert(document, 0);
      if (!json) return Fail(ErrorCode::kMalformed, what + ": nested too deeply, or too large");
      texts.push_back(json->dump(-1, ' ', false, Json::error_handler_t::replace));
    }
    return texts;
  } catch (const YAML::Exception& error) {
    return Fail(ErrorCode::kMalformed,
                what + ":" + std::to_string(error.mark.line + 1) + ": no YAML: " + error.msg);
  }
}

}  // namespace

Result<std::string> YamlToJson(const std::string& yaml, const std::string& what) {
  return std::move(RH_TRY(Convert(yaml, what, OnlyOne)).front());
}

Result<std::vector<std::string>> YamlDocumentsToJson(const std::string& yaml, const std::string& what) {
  return Convert(yaml, what, All);
}

namespace {

// Whether all readers take the text for a string: it begins with a letter or '/', and is not a word of YAML
// 1.1.
bool IsPlain(const std::string& text) {
  constexpr std::string_view kMarks = "/_-.";
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto fits = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || kMarks.find(c) != std::string_view::npos;
  };
  if (text.empty() || !(is_letter(text[0]) || text[0] == '/') || !std::ranges::all_of(text, fits))
    return false;
  const std::vector<std::string_view> words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  return std::ranges::find(words, ToLower(text)) == words.end();
}

void EmitText(YAML::Emitter& yaml, const std::string& text) {
  if (!IsPlain(text)) yaml << YAML::DoubleQuoted;
  yaml << text;
}

void Emit(YAML::Emitter& yaml, const nlohmann::ordered_json& json) {
  if (json.is_string()) return EmitText(yaml, json.get<std::string>());
  if (json.is_null()) {
    yaml << YAML::Null;
    return;
  }
  if (!json.is_structured()) {
    yaml << json.dump();  // a number, true or false: YAML writes them alike
    return;
  }
  if (json.empty()) yaml << YAML::Flow;
  yaml << (json.is_object() ? YAML::BeginMap : YAML::BeginSeq);
  for (const auto& item : json.items()) {
    if (json.is_object()) {
      yaml << YAML::Key;
      EmitText(yaml, item.key());
      yaml << YAML::Value;
    }
    Emit(yaml, item.value());
  }
  yaml << (json.is_object() ? YAML::EndMap : YAML::EndSeq);
}

}  // namespace

std::string JsonToYaml(const nlohmann::ordered_json& json) {
  using Ordered = nlohmann::ordered_json;
  YAML::Emitter yaml;
  yaml.SetNullFormat(YAML::LowerNull);
  Emit(yaml, Ordered::parse(json.dump(-1, ' ', false, Ordered::error_handler_t::replace)));
  return std::string(yaml.c_str()) + "\n";
}

}  // namespace railhead
