// railheadd as a process that receives LLDP frames: metrics, the file for NFD, the log and railctl.
#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "tests/support/daemon/daemon_process.h"
#include "tests/support/eventually.h"
#include "tests/support/metrics/http_client.h"
#include "tests/support/metrics/metrics_parser.h"
#include "tests/support/netns/lldp_frame.h"
#include "tests/support/process.h"

namespace railhead::testing {
namespace {

class LldpDaemonTest : public KubeletTest {
 protected:
  // Both ends of each cable are in this process's namespace: the switch's are swp0 and swp1.
  LldpDaemonTest() {
    Ip({"link", "set", "lo", "up"});  // for HTTP
    for (const std::string& n : {std::string("0"), std::string("1")}) {
      Ip({"link", "add", "pf" + n, "up", "type", "veth", "peer", "name", "swp" + n});
      Ip({"link", "set", "swp" + n, "up"});
    }
    for (const char* pf : {"pf0", "pf1"})
      sysfs_.Write(std::string("/sys/class/net/") + pf + "/carrier", "1\n");
    sysfs_.Write("/etc/railhead/fabric.json", R"({"version": 1, "rails": [
      {"name": "rail0", "pf": "pf0", "expectedSwitches": "leaf0"}, {"name": "rail1", "pf": "pf1", "vlan": 101, "expectedSwitches": "leaf1"}]})");
    sysfs_.Write("/features.d/other", "");
  }
  ~LldpDaemonTest() override {
    Ip({"link", "del", "pf0"});
    Ip({"link", "del", "pf1"});
  }
  static void Ip(std::vector<std::string> words) {
    words.insert(words.begin(), "/sbin/ip");
    const auto output = RunProcess(words, {}, "");
    EXPECT_EQ(output.status, 0) << Join(words, " ") << ": " << output.err;
  }
  static void Send(const std::string& from, const Bytes& frame) {
    const UniqueFd fd(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    sockaddr_ll to{};
    to.sll_family = AF_PACKET;
    to.sll_ifindex = static_cast<int>(if_nametoindex(from.c_str()));
    EXPECT_EQ(
        sendto(fd.get(), frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
        static_cast<ssize_t>(frame.size()));
  }
  static std::string AddressOf(const Process& daemon) {
    std::string address;
    Eventually([&] {
      for (const std::string& line : Split(daemon.err(), '\n')) {
        const auto json = nlohmann::json::parse(line, nullptr, false);
        if (json.is_object() && json.value("msg", "") == "serving metrics and probes")
          address = json["address"];
      }
      return !address.empty();
    });
    return address;
  }
  static MetricsText Metrics(const std::string& address) {
    const auto answer = Get(address, "/metrics");
    return answer ? ParseMetrics(answer->body, false) : MetricsText{};
  }
  // Whether the metric says that the rail is connected to this switch.
  bool IsConnected(const std::string& address, int number, const std::string& leaf) {
    const std::string n = std::to_string(number);
    return Eventually([&] {
      Send("swp" + n, LldpFrameOf(leaf, "Ethernet4"));
      const auto page = Metrics(address);
      const auto* sample =
          page.Find("railhead_rail_switch_info",
                    {{"rail", "rail" + n}, {"pf", "pf" + n}, {"switch", leaf}, {"port", "Ethernet4"}});
      return sample != nullptr && sample->value == 1;
    });
  }
  [[nodiscard]] std::string Features() const {
    return ReadFile(root_.Path("/features.d/railhead")).value().value_or("");
  }
};

TEST_F(LldpDaemonTest, ReportsTheSwitchesOfTheRails) {
  const auto daemon = RunDaemon({"--http-address", "127.0.0.1:0", "--nfd-features", "/features.d/railhead"});
  const std::string address = AddressOf(*daemon);
  ASSERT_FALSE(address.empty()) << daemon->err();
  ASSERT_TRUE(IsConnected(address, 0, "leaf0")) << daemon->err();
  ASSERT_TRUE(IsConnected(address, 1, "leaf9")) << daemon->err();
  EXPECT_EQ(Metrics(address).Value("railhead_rail_miscabled", {{"rail", "rail0"}}), 0);
  EXPECT_EQ(Metrics(address).Value("railhead_rail_miscabled", {{"rail", "rail1"}}), 1);
  EXPECT_TRUE(Logs(*daemon, "a rail is connected to a switch that is not among its expectedSwitches"));

  EXPECT_TRUE(Eventually([&] {
    return Features().find("railhead.io/rail1.switch=leaf9\n") != std::string::npos;
  })) << Features();
  EXPECT_EQ(Features().find("railhead.io/rail0.switch="), std::string::npos) << "rail0 has VFs and no VLAN";
  EXPECT_NE(Features().find("# +expiry-time=20"), std::string::npos);
  EXPECT_NE(Features().find("railhead.io/cabling=wrong\n"), std::string::npos) << Features();
  EXPECT_NE(Features().find("railhead.io/rail0.vfs=4\n"), std::string::npos) << Features();

  const auto shown = RunProcess({RAILCTL, "lldp"}, {{"RAILHEAD_ROOT", sysfs_.directory()}}, "");
  EXPECT_EQ(shown.status, 1) << "rail1 is wrong\n" << shown.out;
  EXPECT_NE(shown.out.find("wrong: expected: leaf1"), std::string::npos) << shown.out << shown.err;
  EXPECT_EQ(daemon->Stop(), 0);
}

TEST_F(LldpDaemonTest, KnowsItAfterARestartAndWritesNoFeaturesUnasked) {
  {
    const auto daemon = RunDaemon({"--http-address", "127.0.0.1:0"});
    ASSERT_TRUE(IsConnected(AddressOf(*daemon), 0, "leaf0")) << daemon->err();
    ASSERT_TRUE(Eventually([&] {
      return ReadFile(root_.Path("/run/railhead/lldp.json")).value().value_or("").find("leaf0") !=
             std::string::npos;
    }));
    EXPECT_EQ(daemon->Stop(), 0);
  }
  const auto daemon = RunDaemon({"--http-address", "127.0.0.1:0"});
  const std::string address = AddressOf(*daemon);
  EXPECT_TRUE(Eventually([&] {
    return Metrics(address).Find(
               "railhead_rail_switch_info",
               {{"rail", "rail0"}, {"pf", "pf0"}, {"switch", "leaf0"}, {"port", "Ethernet4"}}) != nullptr;
  })) << "without a frame";
  EXPECT_EQ(daemon->Stop(), 0);
  EXPECT_EQ(ListDirectory(root_.Path("/features.d"))->value(), std::vector<std::string>{"other"});
}

}  // namespace
}  // namespace railhead::testing
