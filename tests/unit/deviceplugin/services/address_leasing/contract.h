// What every ClusterStore has to do: one suite for all of them. A program that links it says
// which stores there are.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "ipam/lease/cluster_store.h"

namespace railhead::testing {

// A service that is shared by all clients that it makes, empty at first.
class StoreService {
 public:
  StoreService() = default;
  StoreService(const StoreService&) = delete;
  StoreService& operator=(const StoreService&) = delete;
  virtual ~StoreService() = default;
  virtual std::unique_ptr<ipam::ClusterStore> Client() = 0;
};

struct StoreMaker {
  std::string name;
  bool is_service = false;  // a store of many clients at once, which has to check names
  std::function<std::unique_ptr<StoreService>()> make;
};

inline void PrintTo(const StoreMaker& maker, std::ostream* out) {
  *out << maker.name;
}

std::vector<StoreMaker> StoresUnderTest();

}  // namespace railhead::testing
