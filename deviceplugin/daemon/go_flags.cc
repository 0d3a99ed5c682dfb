#include "deviceplugin/daemon/go_flags.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace railhead::daemon {
namespace {

enum class Meaning : std::uint8_t { kOurs, kLogLevel, kDropWithValue, kDropBoolean, kCdi };

struct GoFlag {
  std::string_view name;
  Meaning meaning;
};

constexpr std::array<GoFlag, 14> kGoFlags{{
    {"config-file", Meaning::kOurs},
    {"resource-prefix", Meaning::kOurs},
    {"log-level", Meaning::kLogLevel},  // of the entry point: glog's verbosity
    {"v", Meaning::kLogLevel},
    {"use-cdi", Meaning::kCdi},
    {"log-dir", Meaning::kDropWithValue},
    {"log_dir", Meaning::kDropWithValue},
    {"log_backtrace_at", Meaning::kDropWithValue},
    {"log_link", Meaning::kDropWithValue},
    {"stderrthreshold", Meaning::kDropWithValue},
    {"vmodule", Meaning::kDropWithValue},
    {"logbuflevel", Meaning::kDropWithValue},
    {"logtostderr", Meaning::kDropBoolean},
    {"alsologtostderr", Meaning::kDropBoolean},
}};

const GoFlag* FindFlag(std::string_view name) {
  const auto* const found = std::ranges::find(kGoFlags, name, &GoFlag::name);
  return found == kGoFlags.end() ? nullptr : found;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// glog's levels 0 to 3 are for operators; from 4 on they are for debugging.
std::string LevelOf(std::string_view verbosity) {
  return verbosity.size() == 1 && verbosity < "4" ? "info" : "debug";
}

// strconv.ParseBool's words.
bool IsTrue(const std::optional<std::string>& value) {
  return !value || *value == "1" || *value == "t" || *value == "T" || *value == "true" || *value == "TRUE" ||
         *value == "True";
}

}  // namespace

ForeignArguments TranslateGoFlags(const std::vector<std::string>& arguments) {
  ForeignArguments result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t dashes = argument.starts_with("--") ? 2 : argument.starts_with("-") ? 1 : 0;
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
    const GoFlag* flag = dashes == 0 ? nullptr : FindFlag(name);
    if (flag == nullptr) {
      result.arguments.push_back(argument);
      continue;
    }
    const bool boolean = flag->meaning == Meaning::kDropBoolean || flag->meaning == Meaning::kCdi;
    std::optional<std::string> value;
    std::string given = argument;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (!boolean && i + 1 < arguments.size()) {
      value = arguments[++i];
      given += " " + *value;
    }
    const bool verbosity = flag->meaning == Meaning::kLogLevel && value && IsNumber(*value);
    if (flag->meaning == Meaning::kCdi) {
      result.arguments.emplace_back(IsTrue(value) ? "--use-cdi" : "--use-cdi=false");
    } else if (verbosity) {
      result.arguments.push_back("--log-level=" + LevelOf(*value));
    } else if (flag->meaning == Meaning::kOurs || flag->meaning == Meaning::kLogLevel) {
      // The entry point passes an empty value on as no value.
      if (value && value->empty()) continue;
      result.arguments.push_back(value ? "--" + name + "=" + *value : "--" + name);
    } else {
      result.dropped.push_back(given);
    }
  }
  return result;
}

}  // namespace railhead::daemon
