// NCCL as a reader of topology files: a second parser, and the resulting distances.
//
// It follows NCCL's handling of each byte (src/graph/xml.cc) and shares no code with cni/nccl, so that it can
// read back that code's output. It accepts everything that NCCL accepts, except text that NCCL silently
// misreads: two blanks between attributes, elements that it skips. Where releases differ, the strictest
// counts.
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
  // nullopt: NCCL would stop with an error or misread it. `why` (may be null) gets the reason.
  static std::optional<NcclModel> Load(std::string_view text, std::string* why = nullptr);

  [[nodiscard]] std::vector<std::string> Nets() const;  // names, in the file's order
  [[nodiscard]] std::vector<std::string> Gpus() const;  // addresses of display controllers and accelerators
  [[nodiscard]] std::vector<std::string> Switches() const;
  [[nodiscard]] const NcclNode* Net(const std::string& name) const;

  // "PIX", "PXB", "PHB", "SYS", "DIS" (no path, in one release); "" when one of the two does not exist.
  [[nodiscard]] std::string PathBetween(const std::string& net, const std::string& gpu) const;
  // Whether two nets would be merged into one at NCCL's default level.
  [[nodiscard]] bool WouldMerge(const std::string& net, const std::string& other) const;
  // The NUMA node whose processors a net is connected to.
  [[nodiscard]] std::string NodeOf(const std::string& net) const;

 private:
  [[nodiscard]] std::vector<const NcclNode*> All(std::string_view tag) const;
  [[nodiscard]] const NcclNode* Gpu(const std::string& busid) const;

  std::unique_ptr<NcclNode> top_;
};

}  // namespace railhead::testing
