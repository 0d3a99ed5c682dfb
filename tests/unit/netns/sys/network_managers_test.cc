// Which network managers configure a device, as their files say.
#include "netns/sys/network_managers.h"

#include <gtest/gtest.h>

#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

using Names = std::vector<std::string>;

struct StateFile {
  const char* text;
  bool manages;
};

TEST(NetworkManagers, NetworkdManagesWhatItConfigures) {
  const TempRoot temp;
  EXPECT_EQ(ManagersOf(temp.root(), 7), Names{});
  const std::string before = "# This is private data. Do not parse.\n";
  for (const StateFile& file :
       std::initializer_list<StateFile>{{"ADMIN_STATE=configured\nOPER_STATE=routable\n", true},
                                        {"ADMIN_STATE=configuring\n", true},
                                        {"ADMIN_STATE=failed\n", true},
                                        {"ADMIN_STATE=unmanaged\nOPER_STATE=carrier\n", false},
                                        {"ADMIN_STATE=pending\n", false},
                                        {"ADMIN_STATE=initialized\n", false},
                                        {"ADMIN_STATE=linger\n", false},
                                        {"OPER_STATE=configured\n", false},
                                        {"XADMIN_STATE=configured\n", false},
                                        {"[x]\nADMIN_STATE=configured\n", false},
                                        {"ADMIN_STATE", false},
                                        {"", false}}) {
    temp.Write("/run/systemd/netif/links/7", before + file.text);
    EXPECT_EQ(ManagersOf(temp.root(), 7), file.manages ? Names{"systemd-networkd"} : Names{}) << file.text;
    EXPECT_EQ(ManagersOf(temp.root(), 8), Names{});
  }
  EXPECT_EQ(ManagersOnHost(temp.root()), Names{"systemd-networkd"});
}

// NetworkManager has a file for each device that it knows.
TEST(NetworkManagers, NetworkManagerManagesWhatItSaysSo) {
  const TempRoot temp;
  for (const StateFile& file : std::initializer_list<StateFile>{
           {"[device]\nmanaged=true\nconnection-uuid=5b1b\n", true},
           {"[device]\nnm-owned=false\nmanaged=true\n\n[dhcp4]\ndomain_name_servers=192.0.2.1\n", true},
           {"[device]\nmanaged=false\n", false},
           {"[device]\nmanaged=unknown\n", false},
           {"[device]\nperm-hw-addr-fake=02:00:00:00:00:07\n", false},
           {"[dhcp4]\nmanaged=true\n", false},
           {"managed=true\n", false},
           {"[device]\n", false},
           {"", false}}) {
    temp.Write("/run/NetworkManager/devices/7", file.text);
    EXPECT_EQ(ManagersOf(temp.root(), 7), file.manages ? Names{"NetworkManager"} : Names{}) << file.text;
  }
  temp.Write("/run/NetworkManager/devices/7", "[device]\nmanaged=true\n");
  temp.Write("/run/systemd/netif/links/7", "ADMIN_STATE=configured\n");
  EXPECT_EQ(ManagersOf(temp.root(), 7), (Names{"NetworkManager", "systemd-networkd"}));
  EXPECT_EQ(ManagersOnHost(temp.root()), (Names{"NetworkManager", "systemd-networkd"}));
}

TEST(NetworkManagers, WhatCannotBeReadNamesNone) {
  const TempRoot temp;
  EXPECT_EQ(ManagersOnHost(temp.root()), Names{});
  temp.Write("/run/NetworkManager/devices/7/file", "");
  EXPECT_EQ(ManagersOf(temp.root(), 7), Names{});
}

}  // namespace
}  // namespace railhead::testing
