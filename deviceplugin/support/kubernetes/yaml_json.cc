#include "deviceplugin/support/kubernetes/yaml_json.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

namespace railhead {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 20;
// A few aliases can stand for any number of nodes.
constexpr int kMostNodes = 20000;

class Converter {
 public:
  // nullopt: too much of it.
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

// yaml-cpp goes no further at a token that begins nothing, as a ',' outside of brackets, and takes it for one
// empty document after the other, without end.
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

}  // namespace railhead
