// Values of the address store. The first byte says how long the key is.
#include <algorithm>

#include "ipam/store/address_record.h"
#include "ipam/store/events.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  if (size == 0) return 0;
  const std::string text = railhead::fuzz::TextOf(data + 1, size - 1);
  const std::string key = text.substr(0, std::min<std::size_t>(data[0], text.size()));
  const std::string value = text.substr(key.size());
  if (const auto header = railhead::DecodeHeader(value)) {
    Require(railhead::Encode(*header) == value, "a header is encoded as it was");
  }
  if (const auto address = railhead::DecodeAddress(value)) {
    Require(railhead::Encode(*address) == value, "an address is encoded as it was");
  }
  if (const auto record = railhead::DecodeRecord(key, value)) {
    const auto again = railhead::DecodeRecord(railhead::AddressKey(record->pool, record->address),
                                              railhead::Encode(*record));
    Require(again && *again == *record, "a record is decoded as it was encoded");
  }
  const std::string prefix = railhead::RestPrefix("10.100.0.0/24");
  if (key.compare(0, prefix.size(), prefix) == 0) (void)railhead::DecodeRestKey("10.100.0.0/24", key);
  if (const auto event = railhead::DecodeEvent(key, value)) {
    Require(railhead::Encode(*event) == value, "an event is encoded as it was");
  }
  if (const auto counters = railhead::DecodeCounters(value)) {
    Require(railhead::Encode(*counters) == value, "counters are encoded as they were");
  }
  return 0;
}
