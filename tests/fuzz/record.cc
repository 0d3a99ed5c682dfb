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
  if (const auto header = railhead::ipam::DecodeHeader(value)) {
    Require(railhead::ipam::Encode(*header) == value, "a header is encoded as it was");
  }
  if (const auto address = railhead::ipam::DecodeAddress(value)) {
    Require(railhead::ipam::Encode(*address) == value, "an address is encoded as it was");
  }
  if (const auto record = railhead::ipam::DecodeRecord(key, value)) {
    const auto again = railhead::ipam::DecodeRecord(railhead::ipam::AddressKey(record->pool, record->address),
                                                    railhead::ipam::Encode(*record));
    Require(again && *again == *record, "a record is decoded as it was encoded");
  }
  const std::string prefix = railhead::ipam::ReuseQueuePrefix("10.100.0.0/24");
  if (key.compare(0, prefix.size(), prefix) == 0) (void)railhead::ipam::DecodeQueueKey("10.100.0.0/24", key);
  if (const auto event = railhead::ipam::DecodeEvent(key, value)) {
    Require(railhead::ipam::Encode(*event) == value, "an event is encoded as it was");
  }
  if (const auto counters = railhead::ipam::DecodeCounters(value)) {
    Require(railhead::ipam::Encode(*counters) == value, "counters are encoded as they were");
  }
  return 0;
}
