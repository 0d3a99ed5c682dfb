// The names of what is measured of railheadd with many VFs: between those who measure
// (node_work.h, node_daemon.h) and those who judge and show it.
// Threads: constants.
#pragma once

namespace railhead::bench {

// Who.
inline constexpr const char* kDaemonName = "railheadd";
inline constexpr const char* kRailctl = "railctl";
inline constexpr const char* kBareReading = "bare reading";
inline constexpr const char* kDurableWrite = "one durable write";
inline constexpr const char* kOnDisk = "railheadd, on disk";
inline constexpr const char* kWaitingForDisk = "of it in fsync";
inline constexpr const char* kFsyncs = "calls of fsync";
inline constexpr const char* kOverGrpc = "over gRPC";
inline constexpr const char* kLatePool = "railheadd, late binding";

// What.
inline constexpr const char* kDevices = "devices";
inline constexpr const char* kDiscovery = "discovery";
inline constexpr const char* kDiscoveryCpu = "discovery CPU";
inline constexpr const char* kHostNetwork = "of it: the host's network";
inline constexpr const char* kTopology = "topology";
inline constexpr const char* kFiles = "files read";
inline constexpr const char* kAllocateOne = "Allocate 1";
inline constexpr const char* kAllocateEight = "Allocate 8";
inline constexpr const char* kKubeletAllocate = "kubelet: prefer and allocate 1";
inline constexpr const char* kPreferOne = "prefer 1";
inline constexpr const char* kPreferEight = "prefer 8";
inline constexpr const char* kPreferMust = "prefer 8, 3 given";
inline constexpr const char* kPreferNear = "prefer 4 near 4 GPUs";
inline constexpr const char* kHealthTick = "look at health";
inline constexpr const char* kHealthCpu = "health, share of a core";
inline constexpr const char* kStart = "start to first list";
inline constexpr const char* kResident = "resident";
inline constexpr const char* kResidentLater = "resident later";
inline constexpr const char* kAnonymous = "anonymous";
inline constexpr const char* kProportional = "proportional";
inline constexpr const char* kThreads = "threads";
inline constexpr const char* kIdleCpu = "idle CPU";
inline constexpr const char* kWakeups = "wake-ups";
inline constexpr const char* kHotPlug = "change to new list";
inline constexpr const char* kNics = "/metrics/nics, CPU";
inline constexpr const char* kNicsPage = "of it: writing the page";
inline constexpr const char* kNicsWall = "/metrics/nics";
inline constexpr const char* kNicsBytes = "size of /metrics/nics";
inline constexpr const char* kDoctor = "doctor";
inline constexpr const char* kDoctorFiles = "doctor's files read";
inline constexpr const char* kDoctorOne = "doctor, one check of PFs";
inline constexpr const char* kDoctorStart = "doctor --list: start and end";

}  // namespace railhead::bench
