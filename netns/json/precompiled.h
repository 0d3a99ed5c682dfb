// Headers that the compiler reads once for all libraries instead of once for each of their files, if
// RAILHEAD_PRECOMPILE is on. No file includes this one. A file includes what it uses, and a build without
// RAILHEAD_PRECOMPILE fails when it does not.
//
// nlohmann's header takes longer to read than most files. Under sanitizers the code that every file makes of
// nlohmann::json takes longer than the file's own. The "extern template" below makes that code once, in
// precompiled.cc.
// Source: https://json.nlohmann.me/api/basic_json/, and detail/ of nlohmann-json 3.11.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <ranges>
#include <sstream>
#include <thread>
#include <tl/expected.hpp>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace nlohmann::detail {

using InputOfString = iterator_input_adapter<std::string::const_iterator>;

extern template class iter_impl<const json>;
extern template class iter_impl<const ordered_json>;
extern template class json_sax_dom_callback_parser<json>;
extern template class json_sax_dom_parser<json>;
extern template class lexer<json, InputOfString>;
extern template class parser<json, InputOfString>;
extern template class serializer<json>;
extern template class serializer<ordered_json>;

}  // namespace nlohmann::detail
