// NCCL as a reader of topology files: a second parser, and the distances that follow.
//
// Written after what NCCL does with each byte (src/graph/xml.cc) and shares no code with
// cni/nccl: what that writes and checks is read back here. It takes what NCCL takes, also what
// nobody should write; not what NCCL takes for something else in silence: two blanks between attributes,
// elements that it skips. Where releases differ the strictest counts.
// Threads: pure functions over values.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace railhead::testing {

struct NcclNode {
  std::string tag;
  std::map<std::string, std::string> attributes;
  NcclNode* parent = nullptr;
  std::vector<std::unique_ptr<NcclNode>> children;
};

class NcclModel {
 public:
  // nullopt: NCCL would stop with an error or misread it; `why` (may be null) says which.
  static std::optional<NcclModel> Load(std::string_view text, std::string* why = nullptr);

  [[nodiscard]] std::vector<std::string> Nets() const;  // names, in the file's order
  [[nodiscard]] std::vector<std::string> Gpus() const;  // addresses of display controllers and accelerators
  [[nodiscard]] std::vector<std::string> Switches() const;
  [[nodiscard]] const NcclNode* Net(const std::string& name) const;

  // "PIX", "PXB", "PHB", "SYS", "DIS" (no way, in one release); "" when one of them is not there.
  [[nodiscard]] std::string PathBetween(const std::string& net, const std::string& gpu) const;
  // Whether two nets would be merged into one at NCCL's default level.
  [[nodiscard]] bool WouldMerge(const std::string& net, const std::string& other) const;
  // The NUMA node on whose processors a net hangs.
  [[nodiscard]] std::string NodeOf(const std::string& net) const;

 private:
  [[nodiscard]] std::vector<const NcclNode*> All(std::string_view tag) const;
  [[nodiscard]] const NcclNode* Gpu(const std::string& busid) const;

  std::unique_ptr<NcclNode> top_;
};

}  // namespace railhead::testing
