#include "deviceplugin/node/inventory/pf_memory.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/state_folder.h"
#include "netns/json/json_reader.h"

namespace railhead {
namespace {

using Json = nlohmann::json;
using Known = std::map<std::string, NicFunction>;  // only the parts that the file has

constexpr const char* kDirectory = "/run/railhead";
constexpr std::int64_t kFileVersion = 1;

std::string MemoryPath(const Root& root) {
  return root.Path(kDirectory) + "/pfs.json";
}

Known ParseMemory(const std::string& text) {
  const auto document = JsonDocument::Parse(text, "pfs.json", kMaxFileSize);
  if (!document) return {};
  JsonReader reader = document->Root();
  if (!reader.Int("version", kFileVersion, kFileVersion)) return {};
  Known known;
  for (JsonReader& entry : reader.Objects("pfs")) {
    NicFunction pf;
    pf.id = entry.RequiredString("pf");
    pf.driver = entry.RequiredString("driver");
    pf.pf_name = entry.String("name").value_or("");
    pf.link_type = entry.String("linkType").value_or("");
    pf.is_rdma = entry.Bool("rdma").value_or(false);
    known[pf.id] = std::move(pf);
  }
  return reader.status() ? known : Known{};
}

Known ReadMemory(const Root& root) {
  const auto text = ReadFile(MemoryPath(root));
  return text && *text ? ParseMemory(**text) : Known{};
}

// Of what was known and what is seen, the same device in the same role.
bool IsSamePf(const NicFunction& before, const NicFunction& now) {
  return before.driver == now.driver &&
         (before.link_type.empty() || now.link_type.empty() || before.link_type == now.link_type);
}

std::string MemoryAsText(const Known& known) {
  Json json = {{"version", kFileVersion}, {"pfs", Json::array()}};
  for (const auto& [id, pf] : known) {
    json["pfs"].push_back({{"pf", id},
                           {"driver", pf.driver},
                           {"name", pf.pf_name},
                           {"linkType", pf.link_type},
                           {"rdma", pf.is_rdma}});
  }
  // Names of interfaces are any bytes.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

void PfMemory::Recall(NicFunction* pf) {
  if (pf->driver.empty()) return;
  if (!known_) known_ = ReadMemory(root_);
  const auto at = known_->find(pf->id);
  if (at == known_->end() || !IsSamePf(at->second, *pf)) return;
  const NicFunction& before = at->second;
  if (pf->pf_name.empty() && !Exists(root_.Path("/sys/class/net/") + before.pf_name)) {
    pf->pf_name = before.pf_name;
  }
  if (pf->link_type.empty()) pf->link_type = before.link_type;
  pf->is_rdma = pf->is_rdma || before.is_rdma;
}

Result<void> RememberPfs(const Root& root, const Inventory& inventory) {
  const std::string path = MemoryPath(root);
  // A file that cannot be read is written anew.
  const auto text = ReadFile(path);
  const std::string before = text ? text->value_or("") : std::string();
  const Known known = ParseMemory(before);
  Known now;
  for (const NicFunction& pf : inventory.functions) {
    if (pf.is_vf || pf.driver.empty()) continue;
    NicFunction& entry = now[pf.id] = pf;
    if (!pf.pf_name.empty()) continue;
    // Its name is another device's for the moment.
    if (const auto old = known.find(pf.id); old != known.end() && IsSamePf(old->second, pf))
      entry.pf_name = old->second.pf_name;
  }
  const std::string after = MemoryAsText(now);
  if (after == before) return {};
  constexpr const char* kWhat = "remembering the PFs";
  RH_TRY_WRAP(MakeStateFolder(root, root.Path(kDirectory)), kWhat);
  RH_TRY_WRAP(WriteAtomic(path, after, Sync::kVolatile, 0644), kWhat);
  return {};
}

}  // namespace railhead
