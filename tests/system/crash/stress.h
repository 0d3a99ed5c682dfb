// Many pods at once on few devices, with calls that are killed at random, as when everything happens at once
// on a node.
//
// Each worker is a CNI runtime and runs pod after pod: a namespace, a device, ADD, CHECK, DEL, the
// namespace's end. For kubelet the device is free; at times its last pod's DEL is still running. Some calls
// are killed at a random system call. Then the worker repeats DEL until it succeeds; DEL may be killed as
// well.
//
// Checked while it runs: no address belongs to two pods, and every undisturbed call succeeds. While the last
// DEL of its device is running, ADD may return "try again later".
// Checked at the end: everything as before, bit for bit.
// Threads: Run() makes its own; the process must have called Adopt().
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "tests/system/crash/cni_calls.h"
#include "tests/system/crash/snapshot.h"

namespace railhead::crash {

struct StressSetting {
  World world;
  std::string netns_directory;       // of the pods' namespaces
  std::vector<std::string> devices;  // BDFs
  int pods = 200;
  int workers = 16;
  int kill_percent = 25;   // of ADDs and of DELs
  int check_percent = 25;  // of attachments
  int early_percent = 30;  // of devices: the next pod gets it while DEL is running
  std::uint64_t seed = 0;
  std::chrono::seconds patience{300};  // without any progress: a deadlock
};

struct StressReport {
  int attached = 0;
  int killed_adds = 0;
  int killed_dels = 0;
  int retried = 0;             // ADDs that returned "try again later"
  std::vector<double> add_ms;  // of undisturbed calls
  std::vector<double> del_ms;
  double seconds = 0;
  std::vector<std::string> wrong;  // the faults, as text
};

// `config` of the plugin is a template: DEVICE in it is replaced by the BDF.
Result<StressReport> RunStress(const StressSetting& setting, const Plugin& plugin);

}  // namespace railhead::crash
