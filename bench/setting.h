// What the contenders of one attach benchmark are given, on this machine or in the
// guest: addresses, programs, and one device for each of them.
// Threads: values.
#pragma once

#include <map>
#include <string>

namespace railhead::bench {

inline constexpr const char* kIfname = "net1";
inline constexpr const char* kSubnet = "10.100.0.0/24";
inline constexpr const char* kGateway = "10.100.0.254";
inline constexpr const char* kRoute = "10.96.0.0/11";
inline constexpr const char* kBareAddress = "10.100.0.210/24";
inline constexpr int kTable = 100;
inline constexpr int kMtu = 1500;

struct Device {
  std::string netdev;  // name on the host
  std::string bdf;
  std::string pf;
  int vf = 0;
};

struct Setting {
  std::string group;  // of the records
  int rounds = 0;
  int vlan = 0;                           // 0: the devices cannot have one
  bool soft_roce = false;                 // for those that can make it
  bool by_bdf = false;                    // host-device is given the PCI address, else the name
  std::string programs;                   // directory of railhead, railhead-ipam, bare_attach, peak_memory
  std::string peers;                      // directory of host-device and the others; empty: without them
  std::string root;                       // RAILHEAD_ROOT; empty: none
  std::string scratch;                    // directory for the peers' state
  std::map<std::string, Device> devices;  // by contender
};

}  // namespace railhead::bench
