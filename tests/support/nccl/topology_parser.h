// The text of a topology file as elements, read as strictly as the strictest NCCL does.
//
// NCCL has a parser of its own (src/graph/xml.cc, xmlGetNode), which accepts less than XML. Between elements
// it accepts blanks and line ends. Inside an element it wants exactly one blank before each NAME="VALUE" and
// none around '='. It accepts no <?xml?>, no text and no entities; NCCL 2.21.5 also no single quotes. Text
// that NCCL accepts by accident is an error here too: a second blank makes an attribute without a name.
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

  // The first attribute with this name, like NCCL.
  [[nodiscard]] const std::string* Find(std::string_view attribute) const;
};

struct ParsedTopology {
  std::vector<TopologyElement> elements;  // in the order of the text: parents before children
  // Where and why NCCL would stop, "line 3: ..."; `elements` then has the elements before that line.
  std::optional<std::string> error;
};

ParsedTopology ParseTopology(std::string_view text);

}  // namespace railhead
