// Addresses of the node's store with all that this node knows of their holders.
// Threads: values. Errors: those of the store, the journal and the runtimes' directories.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "deviceplugin/services/reconcile/address_owners.h"
#include "deviceplugin/tools/railctl/print.h"
#include "ipam/store/store.h"
#include "netns/base/files.h"
#include "netns/base/result.h"

namespace railhead::railctl {

struct KnownAddress {
  AddressRecord record;
  std::string pod;        // "namespace/name", of an attachment of railhead; else empty
  bool attached = false;  // an attachment of railhead has it
  // Why nobody can have it any more; empty: somebody may.
  std::string leak;
};

struct AddressReport {
  std::vector<KnownAddress> addresses;  // by pool, then address
  std::vector<std::string> damage;      // contradictions within the store
  bool complete = false;                // AddressHolders::complete()
};

// nullopt: there is no store.
Result<std::optional<AddressReport>> ReportAddresses(const Root& root);

std::vector<Row> AsRows(const std::vector<KnownAddress>& addresses);
nlohmann::json AsJson(const KnownAddress& address);

}  // namespace railhead::railctl
