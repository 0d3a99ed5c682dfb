#include "ipam/plugin/resolv_conf.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::ipam {
namespace {

std::vector<std::string> Words(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r\v\f";
  std::vector<std::string> words;
  for (auto at = line.find_first_not_of(kBlank); at != std::string_view::npos;) {
    const auto end = std::min(line.find_first_of(kBlank, at), line.size());
    words.emplace_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlank, end);
  }
  return words;
}

void Append(nlohmann::json& dns, const char* key, const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) dns[key].push_back(words[i]);
}

}  // namespace

Result<std::string> DnsOfResolvConf(const Root& root, const std::string& path) {
  const auto text = RH_TRY(ReadRootFile(root.Path(path)));
  if (!text) {
    return Fail(ErrorCode::kNotFound, "resolvConf: " + path + " does not exist",
                "name the file whose name servers containers shall have, or remove resolvConf");
  }
  nlohmann::json dns = nlohmann::json::object();
  for (const std::string& line : Split(*text, '\n')) {
    const auto words = Words(line);
    // Comments begin with '#' or ';': not a keyword.
    if (words.size() < 2) continue;
    if (words[0] == "nameserver") dns["nameservers"].push_back(words[1]);
    if (words[0] == "domain") dns["domain"] = words[1];
    if (words[0] == "search") Append(dns, "search", words);
    if (words[0] == "options") Append(dns, "options", words);
  }
  return dns.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace railhead::ipam
