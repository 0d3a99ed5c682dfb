#include "tests/support/precompiled.h"

template class nlohmann::basic_json<>;

namespace nlohmann::detail {

template class iter_impl<const json>;
template class json_sax_dom_callback_parser<json>;
template class json_sax_dom_parser<json>;
template class lexer<json, InputOfString>;
template class parser<json, InputOfString>;
template class serializer<json>;

}  // namespace nlohmann::detail
