// What is read once for all test programs instead of once for each of their files; see
// tests/CMakeLists.txt. Nothing includes it: a test includes what it uses, and trees
// without RAILHEAD_PRECOMPILE say so when it does not.
//
// gtest's and nlohmann's headers take longer to read than most tests, and under sanitizers
// the code that every file makes of nlohmann::json takes longer than the test's own:
// "extern template" leaves that to tests/support/precompiled.cc.
// Source: https://json.nlohmann.me/api/basic_json/, and detail/ of nlohmann-json 3.11.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

extern template class nlohmann::basic_json<>;

namespace nlohmann::detail {

using InputOfString = iterator_input_adapter<std::string::const_iterator>;

extern template class iter_impl<const json>;
extern template class json_sax_dom_callback_parser<json>;
extern template class json_sax_dom_parser<json>;
extern template class lexer<json, InputOfString>;
extern template class parser<json, InputOfString>;
extern template class serializer<json>;

}  // namespace nlohmann::detail
