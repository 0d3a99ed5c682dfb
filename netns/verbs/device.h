// An RDMA device as libibverbs opens it, its first port and its GID table.
//
// libibverbs lists the devices that the calling process may see. These always have a node below
// /dev/infiniband, and in exclusive RDMA mode they are in the process's network namespace. The providers are
// linked in (verbs.cmake); nothing is loaded at run time.
// Ownership: an object holds the open device, and moves. Threads: one.
// Errors name the device, and the port or GID index in question. Source: rdma-core 44.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netns/base/result.h"
#include "netns/gid/gid_table.h"

struct ibv_context;

namespace railhead {

inline constexpr int kVerbsPort = 1;

struct VerbsPort {
  bool active = false;
  std::string state;  // "down", as libibverbs says it
  bool ethernet = false;
  int mtu = 0;        // bytes of payload a packet: 256 to 4096
  int gid_slots = 0;  // size of the table, empty entries included
};

class VerbsDevice {
 public:
  // Names, sorted. kUnsupported when the kernel has no verbs.
  static Result<std::vector<std::string>> List();
  // The error kNotFound names the devices that exist.
  static Result<VerbsDevice> Open(const std::string& name);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] ibv_context* context() const { return context_.get(); }

  [[nodiscard]] Result<VerbsPort> Port() const;
  // The entries in use. `netdev` is filled in where this namespace has an interface with the
  // entry's number, which in shared mode may be another one.
  [[nodiscard]] Result<std::vector<GidEntry>> Gids() const;
  // kNotFound for an index that is empty or beyond the table; says which are in use.
  [[nodiscard]] Result<GidEntry> Gid(int index) const;

 private:
  struct Closer {
    void operator()(ibv_context* context) const;
  };
  VerbsDevice(std::string name, ibv_context* context) : name_(std::move(name)), context_(context) {}

  std::string name_;
  std::unique_ptr<ibv_context, Closer> context_;
};

}  // namespace railhead
