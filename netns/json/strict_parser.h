// Parses JSON into a value, and refuses what nlohmann::json accepts silently: duplicate keys, NUL characters
// and deep nesting. For JsonDocument.
//
// Threads: pure function. Errors: a sentence with its place. A refusal has the JSON pointer, "/rails/1/vlan:
// is there twice". A syntax error has the byte: "no valid JSON at byte 72 (line 5, column 3) near 'x'",
// without line and column in a text of one line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "netns/base/result.h"

namespace railhead {

// `pointer`: the root's.
tl::expected<nlohmann::json, std::string> ParseStrictly(std::string_view text, std::string_view pointer);

}  // namespace railhead
