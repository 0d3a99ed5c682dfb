// Derived MACs: what they promise, by vectors and by property.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string>

#include "deviceplugin/services/provision/derived_vf_mac.h"

namespace railhead::testing {
namespace {

MacAddress Mac(const std::string& text) {
  return *MacAddress::Parse(text);
}

MacAddress Plus(MacAddress mac, std::uint32_t more) {
  std::uint32_t low = (static_cast<std::uint32_t>(mac.bytes[3]) << 16 |
                       static_cast<std::uint32_t>(mac.bytes[4]) << 8 | mac.bytes[5]) +
                      more;
  mac.bytes[3] = static_cast<std::uint8_t>(low >> 16);
  mac.bytes[4] = static_cast<std::uint8_t>(low >> 8);
  mac.bytes[5] = static_cast<std::uint8_t>(low);
  return mac;
}

// Computed once by another program from the definition: they must never change.
TEST(DerivedVfMac, IsWhatItAlwaysWas) {
  EXPECT_EQ(provision::DerivedVfMac(Mac("b8:ce:f6:01:02:03"), 0).ToString(), "72:7e:01:02:03:00");
  EXPECT_EQ(provision::DerivedVfMac(Mac("b8:ce:f6:01:02:03"), 255).ToString(), "72:7e:01:02:03:ff");
  EXPECT_EQ(provision::DerivedVfMac(Mac("52:54:00:12:34:56"), 7).ToString(), "02:50:12:34:56:07");
  EXPECT_EQ(provision::DerivedVfMac(Mac("00:00:00:00:00:00"), 0).ToString(), "c2:f2:00:00:00:00");
}

TEST(DerivedVfMac, IsLocalUnicastAndAdministrativelyAssigned) {
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same MACs in every run
  for (int i = 0; i < 20'000; ++i) {
    MacAddress pf;
    for (auto& byte : pf.bytes) byte = static_cast<std::uint8_t>(random());
    const MacAddress mac =
        provision::DerivedVfMac(pf, static_cast<int>(random() % provision::kDerivedVfMacs));
    EXPECT_EQ(mac.bytes[0] & 0x0fU, 0x02U) << mac.ToString();
    EXPECT_FALSE(mac.IsMulticast());
    EXPECT_FALSE(mac.IsZero());
  }
}

// Ports of one NIC, and NICs of one production run, have consecutive MACs.
TEST(DerivedVfMac, PfsOfConsecutiveMacsShareNone) {
  for (const char* first :
       {"b8:ce:f6:01:02:00", "b8:ce:f6:00:00:f8", "b8:ce:f6:00:ff:f8", "b8:ce:f6:ff:ff:f8"}) {
    std::set<MacAddress> seen;
    for (std::uint32_t pf = 0; pf < 16; ++pf) {
      for (int vf = 0; vf < provision::kDerivedVfMacs; ++vf)
        seen.insert(provision::DerivedVfMac(Plus(Mac(first), pf), vf));
    }
    EXPECT_EQ(seen.size(), 16U * provision::kDerivedVfMacs) << first;
  }
}

// PFs of one OUI, not only consecutive ones. The MAC identifies the PF and the index.
TEST(DerivedVfMac, PfsOfOneOuiShareNone) {
  std::mt19937 random(2);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  std::set<MacAddress> pfs;
  while (pfs.size() < 500) pfs.insert(Plus(Mac("b8:ce:f6:00:00:00"), random() & 0xffffffU));
  std::set<MacAddress> seen;
  for (const MacAddress& pf : pfs) {
    for (int vf = 0; vf < provision::kDerivedVfMacs; ++vf) {
      const MacAddress mac = provision::DerivedVfMac(pf, vf);
      EXPECT_TRUE(seen.insert(mac).second) << mac.ToString();
      EXPECT_TRUE(mac.bytes[2] == pf.bytes[3] && mac.bytes[3] == pf.bytes[4] && mac.bytes[4] == pf.bytes[5]);
      EXPECT_EQ(mac.bytes[5], vf);
    }
  }
}

// OUIs of NIC vendors: a common NIC part must not make them meet.
TEST(DerivedVfMac, OuisOfOneVendorAreApart) {
  std::set<MacAddress> seen;
  const char* const ouis[] = {"00:02:c9", "00:25:8b", "04:3f:72", "08:c0:eb", "0c:42:a1", "10:70:fd",
                              "1c:34:da", "24:8a:07", "50:6b:4b", "58:a2:e1", "5c:25:73", "7c:fe:90",
                              "90:0a:84", "94:6d:ae", "98:03:9b", "9c:05:91", "9c:63:c0", "a0:88:c2",
                              "b8:3f:d2", "b8:59:9f", "b8:ce:f6", "b8:e9:24", "e0:9d:73", "e4:1d:2d",
                              "e8:eb:d3", "ec:0d:9a", "f4:52:14", "fc:6a:1c"};
  for (const char* oui : ouis) {
    EXPECT_TRUE(seen.insert(provision::DerivedVfMac(Mac(std::string(oui) + ":01:02:03"), 0)).second) << oui;
  }
}

}  // namespace
}  // namespace railhead::testing
