// Two network namespaces with a veth between them, and soft RoCE on both of its ends: rxe_here
// has 10.100.0.1/24, rxe_there 10.100.0.2/24. For the guest, whose kernel has soft RoCE. Threads: one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "netns/linux_kernel.h"
#include "netns/verbs/datagrams.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {

class SoftRocePair {
 public:
  SoftRocePair();
  ~SoftRocePair();
  SoftRocePair(const SoftRocePair&) = delete;
  SoftRocePair& operator=(const SoftRocePair&) = delete;

  // RouteApi of the end in this namespace.
  [[nodiscard]] RouteApi& route() const { return *route_here_; }
  [[nodiscard]] int link() const;

  // The RoCE v2 GID of this address; nullopt: it has none.
  static std::optional<GidEntry> FindGid(const std::string& device, const char* address);
  // Waits until the address has a GID.
  static GidEntry GidAt(const std::string& device, const char* address);
  static Datagrams Open(const std::string& device, const char* address);
  Datagrams OpenHere() { return Open("rxe_here", "10.100.0.1"); }
  Datagrams OpenThere() { return Open("rxe_there", "10.100.0.2"); }

 private:
  LinuxKernel kernel_{Root()};
  NetNs here_ = MakeNetns();
  NetNs there_ = MakeNetns();
  std::unique_ptr<RouteApi> route_here_ = OpenRoute(here_);
  std::unique_ptr<RouteApi> route_there_ = OpenRoute(there_);
  std::unique_ptr<RdmaApi> rdma_here_ = Must(kernel_.OpenRdma(here_));
  std::unique_ptr<RdmaApi> rdma_there_ = Must(kernel_.OpenRdma(there_));
};

}  // namespace railhead::testing
