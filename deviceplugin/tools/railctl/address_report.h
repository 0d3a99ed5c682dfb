// AddressReport: the addresses of this node's store, and what the node knows of their holders. RailAddresses:
// how many a rail has left.
//
// Ownership: values. Threads: any. Errors: those of the store, the journal and the runtimes' directories; of
// the rails those of fabric.json.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni/fabric/fabric.h"
#include "ipam/store/store.h"
#include "netns/base/addresses.h"
#include "netns/base/result.h"
#include "netns/base/root.h"
#include "netns/json/record.h"

namespace railhead::railctl {

// "held", "cooling down", "quarantined"
std::string_view StateOf(const ipam::AddressRecord& record);
inline std::chrono::system_clock::time_point WallTime(std::int64_t seconds) {
  return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

struct KnownAddress {
  ipam::AddressRecord record;
  std::string pod;        // "namespace/name", of an attachment of railhead; else empty
  bool attached = false;  // an attachment of railhead has it
  // Why no container can have it now; empty: one may.
  std::string leak;

  static void List(auto& f) {
    f.Part(&KnownAddress::record, [](auto& part) {
      part("address", &ipam::AddressRecord::address, {.column = "ADDRESS"});
      part("pool", &ipam::AddressRecord::pool, {.column = "POOL"});
      part.Output("state", &StateOf);
    });
    f.Column("STATE", [](const KnownAddress& it) { return it.leak.empty() ? StateOf(it.record) : "leaked"; });
    f.Part(&KnownAddress::record, [](auto& part) {
      using Record = ipam::AddressRecord;
      part.Output("since", [](const Record& it) { return WallTime(it.wall_seconds); }, {.column = "SINCE"});
      part.Part(&Record::owner, [](auto& owner) {
        owner("container", &ipam::AddressOwner::container, {.column = "CONTAINER"});
        owner.Column("INTERFACE", &ipam::AddressOwner::ifname);
        owner.Output("interface", &ipam::AttachmentIfname);
        owner.Output("link", &ipam::LinkName, kSparseField);
        owner("network", &ipam::AddressOwner::network, {.column = "NETWORK"});
      });
      part("bootId", &Record::boot_id);
    });
    f("attached", &KnownAddress::attached);
    f("pod", &KnownAddress::pod, {.need = Need::kSparse, .column = "POD"});
    f("leak", &KnownAddress::leak, {.need = Need::kSparse, .column = "LEAK", .wide = kWide});
  }
};

struct AddressReport {
  std::vector<KnownAddress> addresses;  // by pool, then address
  std::vector<std::string> damage;      // contradictions within the store
  bool complete = false;                // AddressHolders::complete()

  [[nodiscard]] std::vector<KnownAddress> Leaked() const;
  // What `railctl ipam check` says.
  static void List(auto& f) {
    f.Output("leaked", &AddressReport::Leaked);
    f("damage", &AddressReport::damage);
    f("complete", &AddressReport::complete);
  }
};

// This node's part of a rail.
struct RailAddresses {
  std::string rail;
  std::string pool;             // the subnet
  std::vector<IpRange> ranges;  // that the fabric gives this node
  std::uint64_t size = 0;       // addresses for pods in them
  std::uint64_t held = 0;
  std::uint64_t cooling_down = 0;
  std::uint64_t quarantined = 0;
  std::string because;  // why there are none for pods; "": there are

  [[nodiscard]] std::uint64_t Free() const;
  static void List(auto& f) {
    using Rail = RailAddresses;
    f("rail", &Rail::rail, {.column = "RAIL"});
    f("pool", &Rail::pool, {.column = "POOL"});
    f("ranges", &Rail::ranges, {.column = "RANGE"});
    f("size", &Rail::size, {.column = "ADDRESSES"});
    f("held", &Rail::held, {.column = "HELD"});
    f("coolingDown", &Rail::cooling_down, {.column = "COOLING DOWN"});
    f("quarantined", &Rail::quarantined, {.column = "QUARANTINED"});
    f.Output("free", &Rail::Free, {.column = "FREE"});
    f("because", &Rail::because, kSparseField);
  }
};

// What `railctl ipam list` says.
struct AddressList {
  std::vector<RailAddresses> rails;  // in the fabric's order
  std::vector<KnownAddress> addresses;

  static void List(auto& f) {
    f("rails", &AddressList::rails);
    f("addresses", &AddressList::addresses);
  }
};

// The rail has a subnet. kInvalid: the ranges have no address for pods.
Result<RailAddresses> AddressesOfRail(const Rail& rail, const std::vector<IpRange>& ranges,
                                      const AddressReport& report);
// Of each rail with a subnet; none without a fabric.json.
Result<std::vector<RailAddresses>> AddressesOfRails(const Root& root, const AddressReport& report);

// nullopt: the node has no store.
Result<std::optional<AddressReport>> ReportAddresses(const Root& root);

}  // namespace railhead::railctl
