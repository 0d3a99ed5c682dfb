// The text of a topology file as elements, read as strictly as the strictest NCCL does.
//
// NCCL has a parser of its own (src/graph/xml.cc, xmlGetNode), which takes less than XML: between
// elements blanks and line ends; inside of one exactly one blank before each NAME="VALUE" and
// none around '='; no <?xml?>, no text, no entities; NCCL 2.21.5 no single quotes. What it takes though
// nobody means it (a second blank makes an attribute without name) is an error here, too.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railhead {

struct TopologyElement {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::optional<std::size_t> parent;  // position in ParsedTopology::elements
  std::vector<std::size_t> children;
  std::size_t line = 1;

  // Of several with this name the first, as NCCL finds it.
  [[nodiscard]] const std::string* Find(std::string_view attribute) const;
};

struct ParsedTopology {
  std::vector<TopologyElement> elements;  // in the order of the text: parents before children
  // Where and why NCCL would stop, "line 3: ..."; then `elements` is what came before.
  std::optional<std::string> error;
};

ParsedTopology ParseTopology(std::string_view text);

}  // namespace railhead
