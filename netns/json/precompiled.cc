#include "netns/json/precompiled.h"

template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace nlohmann::detail {

template class iter_impl<const json>;
template class iter_impl<const ordered_json>;
template class json_sax_dom_callback_parser<json>;
template class json_sax_dom_parser<json>;
template class lexer<json, InputOfString>;
template class parser<json, InputOfString>;
template class serializer<json>;
template class serializer<ordered_json>;

}  // namespace nlohmann::detail
