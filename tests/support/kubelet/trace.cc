#include "tests/support/kubelet/trace.h"

#include <cctype>
#include <sstream>

#include "netns/base/files.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

// "devicesIDs", "devices_ids" and "deviceIds" are one name: traces contain kubelet's two spellings and
// protobuf's lower camel case.
std::string Folded(const std::string& name) {
  std::string folded;
  folded.reserve(name.size());
  for (const char c : name) {
    if (c != '_') folded.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return folded == "devicesids" ? "deviceids" : folded;
}

std::string Text(const Json& object, const std::string& name) {
  const Json* field = Field(object, name);
  return field != nullptr && field->is_string() ? field->get<std::string>() : "";
}

tl::unexpected<Error> Bad(const std::string& what, int line, const std::string& why) {
  return Fail(ErrorCode::kMalformed, what + ", line " + std::to_string(line) + ": " + why,
              "the format is in tests/support/kubelet/README.md");
}

Result<TraceEvent> ParseEvent(const Json& object, const std::string& what, int line) {
  TraceEvent event;
  event.from = Text(object, "from");
  event.call = Text(object, "call");
  event.resource = Text(object, "resource");
  if (event.from != "kubelet" && event.from != "plugin" && event.from != "node")
    return Bad(what, line, "'from' is neither kubelet, plugin nor node");
  if (event.call.empty()) return Bad(what, line, "'call' is missing");
  if (const Json* plugin = Field(object, "plugin"); plugin != nullptr && !plugin->is_null()) {
    if (!plugin->is_number_integer()) return Bad(what, line, "'plugin' is no number");
    event.plugin = plugin->get<int>();
  }
  if (const Json* request = Field(object, "request")) event.request = *request;
  if (const Json* response = Field(object, "response")) event.response = *response;
  const Json* error = Field(object, "error");
  if (error == nullptr || error->is_null()) return event;
  const Json* code = Field(*error, "code");
  if (code == nullptr || !code->is_number_integer()) return Bad(what, line, "'error' has no code");
  event.error = TraceError{code->get<int>(), Text(*error, "message")};
  return event;
}

Json AsJson(const TraceEvent& event) {
  Json object{{"from", event.from}, {"call", event.call}, {"plugin", event.plugin}};
  if (!event.resource.empty()) object["resource"] = event.resource;
  if (!event.request.is_null()) object["request"] = event.request;
  object["response"] = event.response;
  if (event.error) object["error"] = {{"code", event.error->code}, {"message", event.error->message}};
  return object;
}

}  // namespace

std::string TraceEvent::Title() const {
  return from + "'s " + call + (resource.empty() ? "" : " of " + resource);
}

Result<Trace> ParseTrace(const std::string& text, const std::string& what) {
  Trace trace;
  std::istringstream lines(text);
  std::string line;
  bool begun = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty()) continue;
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) return Bad(what, number, "no JSON object");
    if (begun) {
      trace.events.push_back(RH_TRY(ParseEvent(object, what, number)));
      continue;
    }
    if (Field(object, "trace") == nullptr)
      return Bad(what, number, "does not begin with the line {\"trace\": 1, ...}");
    if (*Field(object, "trace") != 1) return Bad(what, number, "a version of the format that is not known");
    trace.kubelet = Text(object, "kubelet");
    trace.scenario = Text(object, "scenario");
    begun = true;
  }
  if (trace.events.empty()) return Bad(what, 1, "nothing in it");
  return trace;
}

Result<Trace> ReadTrace(const std::string& path) {
  const auto text = RH_TRY(ReadFile(path));
  if (!text) return Fail(ErrorCode::kNotFound, "reading the trace " + path + ": no such file");
  return ParseTrace(*text, path);
}

std::string TraceAsText(const Trace& trace) {
  std::string text =
      Json{{"trace", 1}, {"kubelet", trace.kubelet}, {"scenario", trace.scenario}}.dump() + "\n";
  for (const TraceEvent& event : trace.events) text += AsJson(event).dump() + "\n";
  return text;
}

const Json* Field(const Json& object, const std::string& name) {
  if (!object.is_object()) return nullptr;
  const std::string folded = Folded(name);
  for (const auto& [key, value] : object.items()) {
    if (Folded(key) == folded) return &value;
  }
  return nullptr;
}

std::vector<std::string> IdsIn(const Json* list) {
  std::vector<std::string> ids;
  if (list == nullptr || !list->is_array()) return ids;
  ids.reserve(list->size());
  for (const Json& item : *list) {
    if (item.is_string()) ids.push_back(item.get<std::string>());
    if (item.is_object()) ids.push_back(Text(item, "ID"));
  }
  return ids;
}

}  // namespace railhead::testing
