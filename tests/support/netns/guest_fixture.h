// The environment of tests in the guest: node 0 of tests/support/vm with two PFs, pf0 and pf1, two VFs each,
// and the real kernel.
//
// These tests change the machine they run on: VFs are made, drivers rebound,
// modules loaded. They refuse to run anywhere else than in the guest.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "netns/linux_kernel.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {

// Polls until `holds`, at most kLong. For conditions that have no event.

class GuestTest : public ::testing::Test {
 protected:
  // Makes the VFs, once.
  static void SetUpTestSuite();

  GuestTest();
  // Every test must leave VF 0 of pf0 as it found it.
  ~GuestTest() override;

  // The interface of a VF in the node's own namespace.
  Link VfLink();
  // VF 0 as the PF reports it. igb reports the address that the VF asked for as if the administrator had set
  // it. While the VF resets (igb_vf_reset), igb reports none; on a slow machine this can happen at any time.
  // So the VF's own address, vf_.mac, reads as none here.
  VfSettings SettingsOfVf();
  // Retries until a slow driver succeeds.
  void BringPodUp(RouteApi& pod_route, int index, const char* address);

  static constexpr char kBdf[] = "0000:43:10.0";  // VF 0 of pf0

  LinuxKernel kernel_{Root()};
  NetNs host_ = Must(kernel_.HostNetns());
  std::unique_ptr<RouteApi> route_ = Must(kernel_.OpenRoute(host_));
  Link pf_;
  Link vf_;
  VfSettings vf_before_;
};

}  // namespace railhead::testing
