#include "tests/support/nccl/nccl_model.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

namespace railhead::testing {
namespace {

constexpr std::size_t kBuffer = 254;  // characters of a name or value, its end included
constexpr std::size_t kSlots = 16;
constexpr int kNodes = 256;
constexpr std::size_t kChildren = 128;

// Ends the loading, as NCCL's return codes do.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Bytes {
 public:
  explicit Bytes(std::string_view text) : text_(text) {}

  [[nodiscard]] bool AtEnd() const { return at_ == text_.size(); }
  char Next() {
    if (AtEnd()) throw Refused("unexpected end");
    return text_[at_++];
  }
  void Require(const std::string& end) {
    const auto found = text_.find(end, at_);
    if (found == std::string_view::npos) throw Refused("unterminated comment");
    at_ = found + end.size();
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

struct Token {
  std::string name;
  std::optional<std::string> value;
  char last = 0;  // the character after it
};

Token ReadToken(Bytes& bytes, bool may_have_value) {
  Token token;
  while (true) {
    const char c = bytes.Next();
    if (c == '=') {
      if (!may_have_value) throw Refused("a value where none belongs");
      if (bytes.Next() != '"') throw Refused("expected a double quote");
      token.value.emplace();
      for (char v = bytes.Next(); v != '"'; v = bytes.Next()) {
        *token.value += v;
        if (token.value->size() == kBuffer) throw Refused("value too long");
      }
      token.last = bytes.Next();
      return token;
    }
    if (c == ' ' || c == '>' || c == '/' || c == '\n' || c == '\r') {
      token.last = c;
      return token;
    }
    token.name += c;
    if (token.name.size() == kBuffer) throw Refused("name too long");
  }
}

enum class Form { kNone, kOpen, kClose, kSingle };

Form ReadNode(Bytes& bytes, NcclNode& node) {
  char c = ' ';
  while (c == ' ' || c == '\n' || c == '\r') {
    if (bytes.AtEnd()) return Form::kNone;
    c = bytes.Next();
  }
  if (c != '<') throw Refused("expected '<'");
  Token token = ReadToken(bytes, false);
  if (token.name.starts_with("!--")) {
    bytes.Require("-->");
    return ReadNode(bytes, node);
  }
  if (token.name.empty() && token.last == '/') {
    token = ReadToken(bytes, false);
    if (token.last != '>') throw Refused("trailing text in a closing tag");
    node.tag = token.name;
    return Form::kClose;
  }
  node.tag = token.name;
  std::size_t slots = 0;
  while (token.last == ' ') {
    token = ReadToken(bytes, true);
    // NCCL keeps one slot more than it fills. In measurements, seven attributes crashed it.
    if (++slots > kSlots) throw Refused("too many attributes");
    // After a name without '=', or after two blanks, the slot's content is undefined.
    if (!token.value || token.name.empty()) throw Refused("an attribute without name or value");
    node.attributes.emplace(token.name, *token.value);
  }
  if (token.last == '/') {
    if (ReadToken(bytes, false).last != '>') throw Refused("expected '>'");
    return Form::kSingle;
  }
  if (token.last != '>') throw Refused("expected '>'");
  return Form::kOpen;
}

// Which elements NCCL reads where.
const std::map<std::string, std::vector<std::string>>& Handlers() {
  static const std::map<std::string, std::vector<std::string>> handlers = {
      {"", {"system"}},        {"system", {"cpu"}},
      {"cpu", {"pci", "nic"}}, {"pci", {"pci", "gpu", "nic", "pcilink"}},
      {"nic", {"net"}},        {"gpu", {"nvlink", "c2c"}}};
  return handlers;
}

void LoadBelow(Bytes& bytes, NcclNode& head, bool is_top, int& count) {
  while (true) {
    if (count == kNodes) throw Refused("too many nodes");
    auto node = std::make_unique<NcclNode>();
    const Form form = ReadNode(bytes, *node);
    if (form == Form::kNone) {
      if (is_top) return;
      throw Refused("unterminated " + head.tag);
    }
    if (form == Form::kClose) {
      if (is_top || node->tag != head.tag) throw Refused("mismatch: " + head.tag + " / " + node->tag);
      return;
    }
    const auto known = Handlers().find(head.tag);
    const bool wanted = known != Handlers().end() && std::find(known->second.begin(), known->second.end(),
                                                               node->tag) != known->second.end();
    // The real NCCL continues in a buffer that is in use, so the result is always wrong.
    if (!wanted) throw Refused("<" + node->tag + "> in <" + head.tag + ">");
    if (head.children.size() == kChildren) throw Refused("too many children");
    node->parent = &head;
    ++count;
    NcclNode& added = *head.children.emplace_back(std::move(node));
    if (added.tag == "system" &&
        (!added.attributes.contains("version") || added.attributes["version"] != "1"))
      throw Refused("wrong version");
    if (form == Form::kOpen) LoadBelow(bytes, added, false, count);
  }
}

// From the node to the top, itself included.
std::vector<const NcclNode*> Upwards(const NcclNode* node) {
  std::vector<const NcclNode*> chain;
  for (; node != nullptr && !node->tag.empty(); node = node->parent) chain.push_back(node);
  return chain;
}

const std::string* Busid(const NcclNode* node) {
  const auto found = node->attributes.find("busid");
  return found == node->attributes.end() ? nullptr : &found->second;
}

const NcclNode* Cpu(const NcclNode* node) {
  while (node != nullptr && node->tag != "cpu") node = node->parent;
  return node;
}

}  // namespace

std::optional<NcclModel> NcclModel::Load(std::string_view text, std::string* why) {
  NcclModel model;
  model.top_ = std::make_unique<NcclNode>();
  Bytes bytes(text);
  int count = 0;
  try {
    LoadBelow(bytes, *model.top_, true, count);
  } catch (const Refused& refused) {
    if (why != nullptr) *why = refused.what();
    return std::nullopt;
  }
  return model;
}

std::vector<const NcclNode*> NcclModel::All(std::string_view tag) const {
  std::vector<const NcclNode*> found;
  const std::function<void(const NcclNode&)> walk = [&](const NcclNode& node) {
    if (node.tag == tag) found.push_back(&node);
    for (const auto& child : node.children) walk(*child);
  };
  walk(*top_);
  return found;
}

std::vector<std::string> NcclModel::Nets() const {
  std::vector<std::string> names;
  for (const NcclNode* net : All("net")) names.push_back(net->attributes.at("name"));
  return names;
}

std::vector<std::string> NcclModel::Gpus() const {
  std::vector<std::string> busids;
  for (const NcclNode* pci : All("pci")) {
    const std::string& type = pci->attributes.at("class");
    if (type.starts_with("0x03") || type.starts_with("0x12")) busids.push_back(*Busid(pci));
  }
  return busids;
}

std::vector<std::string> NcclModel::Switches() const {
  std::vector<std::string> busids;
  for (const NcclNode* pci : All("pci")) {
    if (pci->attributes.at("class") == "0x060400") busids.push_back(*Busid(pci));
  }
  return busids;
}

const NcclNode* NcclModel::Net(const std::string& name) const {
  for (const NcclNode* net : All("net")) {
    if (net->attributes.at("name") == name) return net;
  }
  return nullptr;
}

const NcclNode* NcclModel::Gpu(const std::string& busid) const {
  for (const NcclNode* pci : All("pci")) {
    if (Busid(pci) != nullptr && *Busid(pci) == busid) return pci;
  }
  return nullptr;
}

std::string NcclModel::PathBetween(const std::string& net, const std::string& gpu) const {
  const NcclNode* net_node = Net(net);
  const NcclNode* gpu_node = Gpu(gpu);
  if (net_node == nullptr || gpu_node == nullptr) return "";
  // Starts at the NIC's <pci>, since <net> and <nic> do not count as distance.
  const NcclNode* nic = net_node->parent->parent;
  const auto gpu_chain = Upwards(gpu_node->parent);
  for (const NcclNode* above = nic->parent; above != nullptr; above = above->parent) {
    if (std::find(gpu_chain.begin(), gpu_chain.end(), above) == gpu_chain.end()) continue;
    if (above->tag == "system") {
      // 2.21.5 puts -1 and others on different machines.
      const bool unknown =
          Cpu(nic)->attributes.at("numaid") == "-1" || Cpu(gpu_node)->attributes.at("numaid") == "-1";
      return unknown ? "DIS" : "SYS";
    }
    if (above->tag == "cpu") return "PHB";
    // A step from switch to switch on either side makes it PXB.
    return above == nic->parent && above == gpu_node->parent ? "PIX" : "PXB";
  }
  return "";
}

bool NcclModel::WouldMerge(const std::string& net, const std::string& other) const {
  auto left = Upwards(Net(net));
  auto right = Upwards(Net(other));
  std::reverse(left.begin(), left.end());
  std::reverse(right.begin(), right.end());
  const auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (l == left.end() || r == right.end()) return true;
  const NcclNode* common = (*l)->parent;
  if (common->tag == "nic" || common->tag == "net") return true;
  const std::string* a = Busid(*l);
  const std::string* b = Busid(*r);
  if (a == nullptr || b == nullptr || a->size() != b->size()) return false;
  return std::equal(a->begin(), a->end() - 1, b->begin());
}

std::string NcclModel::NodeOf(const std::string& net) const {
  const NcclNode* node = Cpu(Net(net));
  return node == nullptr ? "" : node->attributes.at("numaid");
}

}  // namespace railhead::testing
