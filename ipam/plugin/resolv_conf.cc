#include "ipam/plugin/resolv_conf.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "netns/base/files.h"

namespace railhead {
namespace {

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
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
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    const auto words = Words(line);
    // Comments begin with '#' or ';' and are no keyword.
    if (words.size() < 2) continue;
    if (words[0] == "nameserver") dns["nameservers"].push_back(words[1]);
    if (words[0] == "domain") dns["domain"] = words[1];
    if (words[0] == "search") Append(dns, "search", words);
    if (words[0] == "options") Append(dns, "options", words);
  }
  return dns.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace railhead
