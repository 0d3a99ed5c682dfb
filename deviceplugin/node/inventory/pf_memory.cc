#include "deviceplugin/node/inventory/pf_memory.h"

#include <algorithm>

#include "netns/base/files.h"
#include "netns/json/record.h"
#include "netns/json/record_io.h"

namespace railhead::inventory {
namespace {

struct KnownPfs {
  std::vector<KnownPf> pfs;

  bool operator==(const KnownPfs&) const = default;
};

}  // namespace
}  // namespace railhead::inventory

template <>
struct railhead::Shape<railhead::inventory::KnownPf> {
  using Pf = inventory::KnownPf;
  static void List(auto& f) {
    f("pf", &Pf::id, kRequiredField);
    f("driver", &Pf::driver, kRequiredField);
    f("name", &Pf::name);
    f("linkType", &Pf::link_type);
    f("rdma", &Pf::is_rdma);
  }
  static std::string Key(const Pf& pf) { return pf.id; }
};

template <>
struct railhead::Shape<railhead::inventory::KnownPfs> {
  static void List(auto& f) {
    f.Version(1);
    f("pfs", &inventory::KnownPfs::pfs);
  }
};

namespace railhead::inventory {
namespace {

constexpr StateFile<KnownPfs> kMemory{"/run/railhead/pfs.json", "remembering the PFs"};

// A file that cannot be read counts as empty.
std::vector<KnownPf> ReadMemory(const Root& root) {
  const auto file = kMemory.Read(root);
  return file && *file ? (*file)->pfs : std::vector<KnownPf>{};
}

// The same device in the same role; nullptr: unknown.
const KnownPf* FindSamePf(const std::vector<KnownPf>& known, const NicFunction& now) {
  const auto before = std::ranges::find(known, now.id, &KnownPf::id);
  const bool is_same =
      before != known.end() && before->driver == now.driver &&
      (before->link_type.empty() || now.link_type.empty() || before->link_type == now.link_type);
  return is_same ? &*before : nullptr;
}

}  // namespace

void PfMemory::Recall(NicFunction* pf) {
  if (pf->driver.empty()) return;
  if (!known_) known_ = ReadMemory(root_);
  const KnownPf* before = FindSamePf(*known_, *pf);
  if (before == nullptr) return;
  if (pf->pf_name.empty() && !Exists(root_.Path("/sys/class/net/") + before->name))
    pf->pf_name = before->name;
  if (pf->link_type.empty()) pf->link_type = before->link_type;
  pf->is_rdma = pf->is_rdma || before->is_rdma;
}

Result<void> PfMemory::Remember(const Inventory& inventory) const {
  const auto before = kMemory.Read(root_);
  KnownPfs now;
  for (const NicFunction& pf : inventory.functions) {
    if (pf.is_vf || pf.driver.empty()) continue;
    now.pfs.push_back({pf.id, pf.driver, pf.pf_name, pf.link_type, pf.is_rdma});
    if (!pf.pf_name.empty() || !before || !*before) continue;
    // Another device has its name at the moment.
    if (const KnownPf* old = FindSamePf((*before)->pfs, pf)) now.pfs.back().name = old->name;
  }
  std::ranges::sort(now.pfs, {}, &KnownPf::id);
  // A file that cannot be read is written again.
  if (before && *before == now) return {};
  return kMemory.Write(root_, now);
}

}  // namespace railhead::inventory
