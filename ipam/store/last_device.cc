#include "ipam/store/last_device.h"

#include <optional>
#include <string>

#include "ipam/store/address_record.h"
#include "ipam/store/store.h"

namespace railhead::ipam {
namespace {

std::string LastDeviceKey(const AddressPool& pool) {
  return "M" + pool.name;
}

bool Matters(const AddressPool& pool, const AddressRequest& request) {
  return request.mac && pool.ranges.Size() == 1;
}

}  // namespace

Result<bool> HadItLast(const LmdbTxn& txn, const AddressPool& pool, const AddressRequest& request) {
  if (!Matters(pool, request)) return false;
  const auto last = RH_TRY(txn.Get(LastDeviceKey(pool)));
  return last && MacAddress::Parse(*last) == request.mac;
}

Result<void> NoteLastDevice(LmdbTxn& txn, const AddressPool& pool, const AddressRequest& request) {
  if (!Matters(pool, request)) return {};
  return txn.Put(LastDeviceKey(pool), request.mac->ToString());
}

}  // namespace railhead::ipam
