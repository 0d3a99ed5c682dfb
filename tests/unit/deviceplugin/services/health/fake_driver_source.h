// A driver that says what a test wants it to say.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deviceplugin/services/health/driver_source.h"

namespace railhead::testing {

class FakeDriverSource final : public health::DriverSource {
 public:
  Result<std::vector<std::string>> FailedReporters(const std::string& address,
                                                   const std::vector<std::string>& reporters) override {
    ++calls;
    if (error) return Fail(*error);
    std::vector<std::string> wanted;
    for (const std::string& name : failed[address]) {
      if (std::find(reporters.begin(), reporters.end(), name) != reporters.end()) wanted.push_back(name);
    }
    return wanted;
  }
  Result<std::map<std::string, std::uint64_t>> Statistics(const std::string& netdev,
                                                          const std::vector<std::string>& names) override {
    ++calls;
    if (error) return Fail(*error);
    std::map<std::string, std::uint64_t> wanted;
    for (const std::string& name : names) {
      if (statistics[netdev].contains(name)) wanted[name] = statistics[netdev][name];
    }
    return wanted;
  }

  std::map<std::string, std::vector<std::string>> failed;
  std::map<std::string, std::map<std::string, std::uint64_t>> statistics;
  std::optional<Error> error;
  int calls = 0;
};

// For the health of one node: all of its PFs have this source.
inline health::OpenDriverSource OpenShared(std::shared_ptr<FakeDriverSource> source) {
  class Shared final : public health::DriverSource {
   public:
    explicit Shared(std::shared_ptr<FakeDriverSource> source) : source_(std::move(source)) {}
    Result<std::vector<std::string>> FailedReporters(const std::string& address,
                                                     const std::vector<std::string>& reporters) override {
      return source_->FailedReporters(address, reporters);
    }
    Result<std::map<std::string, std::uint64_t>> Statistics(const std::string& netdev,
                                                            const std::vector<std::string>& names) override {
      return source_->Statistics(netdev, names);
    }

   private:
    std::shared_ptr<FakeDriverSource> source_;
  };
  return [source = std::move(source)] { return std::make_unique<Shared>(source); };
}

}  // namespace railhead::testing
