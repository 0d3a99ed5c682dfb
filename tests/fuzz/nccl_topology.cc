// A topology file as NCCL would read it: NCCL's parser takes every file that passes the rules.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "tests/support/nccl/nccl_model.h"
#include "tests/support/nccl/topology_parser.h"
#include "tests/support/nccl/topology_rules.h"

namespace railhead::fuzz {
namespace {

std::string WithLineEnds(const std::string& text) {
  std::string with;
  for (const char c : text) {
    if (c == '\n') with += '\r';
    with += c;
  }
  return with;
}

void CheckAccepted(const std::string& text) {
  const auto nccl = testing::NcclModel::Load(text);
  Require(nccl.has_value(), "NCCL's parser takes what passes the rules");
  for (const std::string& net : nccl->Nets()) {
    Require(!nccl->NodeOf(net).empty(), "a NIC is on a processor");
    for (const std::string& gpu : nccl->Gpus()) {
      Require(!nccl->PathBetween(net, gpu).empty(), "a NIC is somewhere from a GPU");
    }
    for (const std::string& other : nccl->Nets()) {
      Require(net == other || !nccl->WouldMerge(net, other), "no two NICs are merged");
    }
  }
  Require(TopologyViolations(WithLineEnds(text)).empty(), "other line ends change nothing");
  const std::size_t end = text.rfind('>');
  Require(!TopologyViolations(text.substr(0, end)).empty(), "a part is not the whole");
}

void Read(const std::string& text) {
  const ParsedTopology parsed = ParseTopology(text);
  for (std::size_t i = 0; i < parsed.elements.size(); ++i) {
    const TopologyElement& element = parsed.elements[i];
    Require(!element.parent || *element.parent < i, "parents come first");
    for (const std::size_t child : element.children) Require(child > i, "children come later");
  }
  const std::vector<std::string> broken = TopologyViolations(text);
  Require(!parsed.error || (broken.size() == 1 && broken[0] == *parsed.error),
          "what stops NCCL is told alone");
  for (const std::string& sentence : broken) Require(!sentence.empty(), "what is wrong is said");
  if (broken.empty()) CheckAccepted(text);
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  railhead::fuzz::Read(railhead::fuzz::TextOf(data, size));
  return 0;
}
