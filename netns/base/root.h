// Root: the prefix below which every path is taken.
//
// In production it is empty. Tests and development set a directory by RAILHEAD_ROOT, which the binaries read
// in main(), nowhere else. Then /sys, /dev, /etc/railhead, /run/railhead, /var/lib/railhead and /run/cdi all
// come from a tree of their own. Namespace paths that a runtime passes are not taken below it: they name the
// kernel's objects.
// Threads: immutable value.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace railhead {

class Root {
 public:
  Root() = default;
  explicit Root(std::string prefix) : prefix_(std::move(prefix)) {
    while (!prefix_.empty() && prefix_.back() == '/') prefix_.pop_back();
  }

  // `absolute` starts with '/'.
  [[nodiscard]] std::string Path(std::string_view absolute) const { return prefix_ + std::string(absolute); }
  [[nodiscard]] const std::string& prefix() const { return prefix_; }

 private:
  std::string prefix_;
};

}  // namespace railhead
