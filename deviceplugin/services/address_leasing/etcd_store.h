// ClusterStore on etcd v3.
//
// Keys: PREFIX/v1/blocks/POOL/INDEX, where POOL is the subnet with '_' for '/' and INDEX has 20
// digits, so that bytes sort as numbers; PREFIX/v1/nodes/NODE. Values are the entries' own.
// A revision is the key's mod_revision. Reads are linearizable (etcd's default); every change is
// one transaction with one comparison.
// Threads and errors: as ClusterStore says.
#pragma once

#include <memory>

#include "deviceplugin/services/address_leasing/etcd_config.h"
#include "ipam/lease/cluster_store.h"
#include "netns/base/root.h"

namespace railhead {

std::unique_ptr<ClusterStore> MakeEtcdStore(const Root& root, const EtcdConfig& config);

// The key's bytes without the prefix, "/v1/...". Errors: kInvalid for names that make none.
Result<std::string> EtcdKeyOf(const LeaseKey& key);

}  // namespace railhead
