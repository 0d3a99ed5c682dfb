#include "deviceplugin/support/log/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace railhead {
namespace {

// The line's JSON after time and level. Bytes that are not UTF-8 are replaced, not refused.
std::string Body(std::string_view message, Log::Fields fields, const Error* error) {
  nlohmann::ordered_json json;
  json["msg"] = message;
  for (const auto& [name, value] : fields) json[std::string(name)] = value;
  if (error != nullptr) {
    json["error"] = error->message;
    json["code"] = NameOf(error->code);
    if (!error->hint.empty()) json["hint"] = error->hint;
  }
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return text.substr(1, text.size() - 2);
}

// The same as text. Values that are not one plain word are quoted as JSON quotes them.
std::string Text(std::string_view message, Log::Fields fields, const Error* error) {
  const auto quoted = [](std::string_view value) {
    const bool plain = !value.empty() && value.find_first_of(" \"\\=") == std::string_view::npos &&
                       std::ranges::all_of(value, [](char c) { return c > ' ' && c < '\x7f'; });
    if (plain) return std::string(value);
    return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  std::string text(message);
  const auto field = [&](std::string_view name, std::string_view value) {
    text.append(" ").append(name).append("=").append(quoted(value));
  };
  for (const auto& [name, value] : fields) field(name, value);
  if (error != nullptr) {
    field("error", error->message);
    field("code", NameOf(error->code));
    if (!error->hint.empty()) field("hint", error->hint);
  }
  return text;
}

constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})";
constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %l %v";

}  // namespace

class Log::Impl {
 public:
  Impl(const std::string& level, LogFormat format)
      : format_(format), logger_("railheadd", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        format == LogFormat::kJson ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc));
    const auto wanted = spdlog::level::from_str(level);
    logger_.set_level(wanted == spdlog::level::off ? spdlog::level::info : wanted);
    logger_.flush_on(spdlog::level::debug);
  }
  void Write(spdlog::level::level_enum level, std::string_view message, Fields fields, const Error* error) {
    if (!logger_.should_log(level)) return;
    const std::string line =
        format_ == LogFormat::kJson ? Body(message, fields, error) : Text(message, fields, error);
    logger_.log(level, spdlog::string_view_t(line));
  }

 private:
  const LogFormat format_;
  spdlog::logger logger_;
};

Log::Log(const std::string& level, LogFormat format) : impl_(std::make_unique<Impl>(level, format)) {}
Log::~Log() = default;

void Log::Debug(std::string_view message, Fields fields) {
  impl_->Write(spdlog::level::debug, message, fields, nullptr);
}
void Log::Info(std::string_view message, Fields fields) {
  impl_->Write(spdlog::level::info, message, fields, nullptr);
}
void Log::Warning(std::string_view message, Fields fields) {
  impl_->Write(spdlog::level::warn, message, fields, nullptr);
}
void Log::Warning(std::string_view message, const Error& error, Fields fields) {
  impl_->Write(spdlog::level::warn, message, fields, &error);
}
void Log::Failure(std::string_view message, const Error& error, Fields fields) {
  impl_->Write(spdlog::level::err, message, fields, &error);
}

}  // namespace railhead
