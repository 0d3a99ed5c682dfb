// Many pods at once on few devices, with calls that are killed at random: what a node
// sees when everything happens together.
//
// Workers, each a CNI runtime of its own, take pod after pod: a namespace, a device that
// is free as kubelet sees it (at times one whose last pod's DEL is still running), ADD,
// CHECK, DEL, the namespace's end. Some calls are killed at a random system call; then
// DEL comes until it succeeds, and may be killed as well.
//
// Checked while it runs: no address belongs to two pods, every undisturbed call succeeds
// (ADD may be told to try again later while the last DEL of its device is running).
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
  int early_percent = 30;  // of devices that go to the next pod while DEL is running
  std::uint64_t seed = 0;
  std::chrono::seconds patience{300};  // without any progress: a deadlock
};

struct StressReport {
  int attached = 0;
  int killed_adds = 0;
  int killed_dels = 0;
  int retried = 0;             // ADDs that were told to try again later
  std::vector<double> add_ms;  // of undisturbed calls
  std::vector<double> del_ms;
  double seconds = 0;
  std::vector<std::string> wrong;  // what was, as text
};

// `config` of the plugin is a template: DEVICE in it is replaced by the BDF.
Result<StressReport> RunStress(const StressSetting& setting, const Plugin& plugin);

}  // namespace railhead::crash
