// The names of what is measured of the IPAM plugins alone.
// Threads: constants.
#pragma once

namespace railhead::bench {

inline constexpr const char* kIpamGroup = "ipam";

// Who, beside kIpam and kHostLocal (contender.h).
inline constexpr const char* kSyncedCommits = "the disk alone";

// What: one process each, in ms.
inline constexpr const char* kAddEmpty = "ADD, empty pool";
inline constexpr const char* kAddTaken = "ADD, 900 taken";
inline constexpr const char* kAddCrowded = "ADD, 100,000 taken of a /12";
inline constexpr const char* kAddEight = "ADD, eight rails";
inline constexpr const char* kAddBurst = "ADD, 32 at once";
// Per second.
inline constexpr const char* kThroughput = "32 at once, ADDs";
// Seconds.
inline constexpr const char* kThousandPods = "1,000 pods x 8 rails";

}  // namespace railhead::bench
