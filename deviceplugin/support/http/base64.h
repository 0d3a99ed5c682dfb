// Base64 as JSON carries bytes in it.
// Source: RFC 4648 section 4 (with padding).
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace railhead::http {

std::string EncodeBase64(std::string_view bytes);
// nullopt: the text is not Base64. Skips white space: PEM in YAML has line breaks.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace railhead::http
