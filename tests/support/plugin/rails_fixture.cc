#include "tests/support/plugin/rails_fixture.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cni/fabric/fabric.h"
#include "netns/base/text.h"

namespace railhead::testing {

void RailsFixture::MakeNics() {
  int number = 0;
  for (const char* address : {"0000:43:00.0", "0000:83:00.0", "0000:c3:00.0"}) {
    const std::string n = std::to_string(number++);
    vfs_.push_back(kernel_.AddPf({.address = address, .netdev = "pf" + n, .rdma = "mlx5_" + n, .mtu = 9000},
                                 {.count = VfsOfEach(), .rdma = "mlx5_{pf}v{n}"}));
  }
}

void RailsFixture::SetUp() {
  FaultsFixture::SetUp();
  WriteRails();
}

void RailsFixture::WriteRails(const std::vector<std::pair<std::string, std::string>>& rails,
                              const std::string& more) {
  std::vector<std::string> texts;
  int vlan = 100;
  for (const auto& [name, pf] : rails) {
    const std::string net = pf == "pf0" ? "10.100.0." : pf == "pf1" ? "10.200.0." : "10.150.0.";
    texts.push_back(R"({"name":")" + name + R"(","pf":")" + pf + R"(","vlan":)" + std::to_string(vlan) +
                    R"(,"subnet":")" + net + R"(0/24","gateway":")" + net +
                    R"(254","routes":["10.0.0.0/8"],"trafficClass":106)" + more + "}");
    vlan += 100;
  }
  WriteFileAt(sysfs_.directory() + "/etc/railhead/fabric.json",
              R"({"version":1,"rails":[)" + Join(texts, ",") +
                  R"(],"policy":{"networks":[{"ipam":["test-ipam"])" + permissions_ + "}]}}");
}

void RailsFixture::WriteCheckpoint(const std::vector<CheckpointEntry>& all, bool old_form) {
  nlohmann::json entries = nlohmann::json::array();
  for (const auto& given : all) {
    nlohmann::json ids = given.ids;
    if (!old_form) {
      ids = nlohmann::json::object();
      for (std::size_t i = 0; i < given.ids.size(); ++i) ids[std::to_string(i % 2)].push_back(given.ids[i]);
    }
    entries.push_back({{"PodUID", given.uid},
                       {"ContainerName", given.container},
                       {"ResourceName", given.resource},
                       {"DeviceIDs", ids},
                       {"AllocResp", "CiUKDE1FT1dfREVWSUNF"}});
  }
  const nlohmann::json json = {
      {"Data", {{"PodDeviceEntries", entries}, {"RegisteredDevices", {{kDefaultResource, {Bdf(0)}}}}}},
      {"Checksum", 2783421765}};
  WriteFileAt(sysfs_.directory() + kCheckpoint, json.dump());
}

std::string RailsFixture::Devices(const std::vector<std::string>& bdfs) {
  return R"("devices":[")" + Join(bdfs, R"(",")") + R"("])";
}

std::string RailsFixture::IpamForAll(int host) {
  const std::string last = std::to_string(host) + "/24\"";
  return R"("ipam":{"type":"test-ipam","addresses":{"rail0":"10.100.0.)" + last + R"(,"rail1":"10.200.0.)" +
         last + R"(,"rail2":"10.150.0.)" + last + R"(,"net1":"10.100.0.)" + last + "}}";
}

Call RailsFixture::AllRails(int n, const std::string& container) const {
  return {.network = "rails",
          .container = container,
          .config = Devices({Bdf(0, n), Bdf(1, n), Bdf(2, n)}) + "," + IpamForAll(10 + n)};
}

std::vector<std::string> RailsFixture::OurLinks(const std::string& pod) {
  std::vector<std::string> names;
  for (const auto& netdev : kernel_.state().netdevs) {
    if (netdev.ns == pod && !netdev.bdf.empty()) names.push_back(netdev.link.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace railhead::testing
