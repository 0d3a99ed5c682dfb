// railctl vfs as a process on a fake sysfs: exit status and what goes where.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "netns/base/files.h"
#include "netns/sys/pci.h"
#include "tests/support/sysfs/fake_sysfs.h"

namespace railhead::testing {
namespace {

using Json = nlohmann::json;

constexpr const char* kPf = "0000:43:00.0";
constexpr const char* kPfDirectory = "/sys/bus/pci/devices/0000:43:00.0";

class VfsCommandTest : public ::testing::Test {
 protected:
  struct Ended {
    int status = -1;
    std::string out;
    std::string err;
  };

  void SetUp() override {
    sysfs_.AddPf({.address = kPf, .netdev = "", .total_vfs = 8});
    sysfs_.Write("/sys/bus/pci/drivers_probe", "");
    sysfs_.Write("/proc/sys/kernel/random/boot_id", "11111111-2222\n");
  }

  Ended Railctl(const std::string& arguments) {
    const std::string errors = sysfs_.directory() + "/stderr";
    const std::string command =
        "RAILHEAD_ROOT='" + sysfs_.directory() + "' '" RAILCTL "' " + arguments + " 2>'" + errors + "'";
    Ended ended;
    FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) {
      ADD_FAILURE() << "cannot run " << command;
      return ended;
    }
    std::array<char, 4096> buffer{};
    while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
      ended.out.append(buffer.data(), got);
    }
    const int status = ::pclose(pipe);
    ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ended.err = ReadFile(errors).value().value_or("");
    return ended;
  }

  static std::string FabricWith(const std::string& provision) {
    return R"({"version": 1, "rails": [{"name": "rail0", "pf": "0000:43:00.0"}])" +
           (provision.empty() ? std::string() : R"(, "provision": )" + provision) + "}";
  }
  void WriteFabric(const std::string& provision) {
    sysfs_.Write("/etc/railhead/fabric.json", FabricWith(provision));
  }

  [[nodiscard]] std::string File(const std::string& path) const {
    return ReadAttribute(sysfs_.directory() + path).value().value_or("(none)");
  }

  FakeSysfs sysfs_;
};

TEST_F(VfsCommandTest, NothingStatedIsStatus3) {
  for (const char* command : {"vfs plan", "vfs apply"}) {
    WriteFabric("");
    const Ended ended = Railctl(command);
    EXPECT_EQ(ended.status, 3);
    EXPECT_NE(ended.err.find("\"provision\""), std::string::npos) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
}

TEST_F(VfsCommandTest, AMissingFileIsStatus3) {
  for (const char* command : {"vfs plan", "vfs apply"}) {
    const Ended ended = Railctl(command);
    EXPECT_EQ(ended.status, 3);
    EXPECT_NE(ended.err.find("no such file: /etc/railhead/fabric.json"), std::string::npos) << ended.err;
    EXPECT_NE(ended.err.find("railctl fabric suggest"), std::string::npos) << ended.err;
  }
}

TEST_F(VfsCommandTest, WhatIsWrongIsStatus3WithItsPointer) {
  WriteFabric(R"({"vfs": 2, "mtus": 3})");
  for (const char* command : {"vfs plan", "vfs apply", "config check /etc/railhead/fabric.json"}) {
    const Ended ended = Railctl(command);
    EXPECT_EQ(ended.status, 3);
    EXPECT_NE(ended.err.find("/etc/railhead/fabric.json: /provision/mtus"), std::string::npos) << ended.err;
  }
  EXPECT_EQ(File(std::string(kPfDirectory) + "/sriov_numvfs"), "0");
}

TEST_F(VfsCommandTest, PlanTellsByItsStatus) {
  WriteFabric(R"({"vfs": 2})");
  const Ended changes = Railctl("vfs plan");
  EXPECT_EQ(changes.status, 4) << changes.err;
  EXPECT_NE(changes.out.find("make 2 VFs"), std::string::npos) << changes.out;
  EXPECT_EQ(File(std::string(kPfDirectory) + "/sriov_numvfs"), "0") << "nothing is touched";
  const Ended json = Railctl("vfs plan -o json");
  EXPECT_EQ(json.status, 4);
  EXPECT_EQ(Json::parse(json.out)["pfs"][0]["vfs"]["wanted"], 2);
  WriteFabric(R"({"vfs": 9})");
  const Ended refused = Railctl("vfs plan");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.out.find("can have 8"), std::string::npos) << refused.out;
  WriteFabric(R"({"vfs": 0})");
  const Ended nothing = Railctl("vfs plan");
  EXPECT_EQ(nothing.status, 0) << nothing.out;
  sysfs_.Write("/new.json", FabricWith(R"({"vfs": 2})"));
  const Ended other = Railctl("vfs plan --fabric /new.json");
  EXPECT_EQ(other.status, 4) << other.err;
  EXPECT_NE(other.out.find("make 2 VFs"), std::string::npos) << other.out;
  EXPECT_EQ(Railctl("vfs plan --rail rail7").status, 1);
  EXPECT_EQ(Railctl("vfs plan --rail").status, 2);
  EXPECT_EQ(Railctl("vfs").status, 2);
}

TEST_F(VfsCommandTest, ApplyRefusesWithStatus1) {
  WriteFabric(R"({"vfs": 9})");
  const Ended text = Railctl("vfs apply");
  EXPECT_EQ(text.status, 1);
  EXPECT_NE(text.out.find("refused"), std::string::npos) << text.out;
  const Ended json = Railctl("vfs apply -o json");
  EXPECT_EQ(json.status, 1);
  EXPECT_EQ(Json::parse(json.out)["ok"], false);
  EXPECT_EQ(Json::parse(json.out)["pfs"][0]["error"]["code"], "unsupported");
  sysfs_.Write("/new.json", FabricWith(R"({"vfs": 10})"));
  const Ended other = Railctl("vfs apply --fabric /new.json -o json");
  EXPECT_EQ(other.status, 1) << other.err;
  EXPECT_EQ(Json::parse(other.out)["pfs"][0]["vfs"]["wanted"], 10);
}

// The kernel accepts the write and makes nothing. The command detects that from the devices that exist.
TEST_F(VfsCommandTest, ApplyLooksAtWhatWasMade) {
  WriteFabric(R"({"vfs": 2})");
  const Ended ended = Railctl("vfs apply");
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.out.find("made 0 VFs instead of 2"), std::string::npos) << ended.out;
}

TEST_F(VfsCommandTest, VfsWithTheirDriverNeedNothing) {
  (void)sysfs_.AddVfs(kPf, 2, {.netdev = "", .driver = "vfio-pci"});
  WriteFabric(R"({"vfs": 2, "driver": "vfio-pci"})");
  for (const char* command : {"vfs plan", "vfs apply"}) {
    const Ended ended = Railctl(command);
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
    EXPECT_NE(ended.out.find("2 VFs, nothing to do"), std::string::npos) << ended.out;
  }
}

// Real writes to the attributes of drivers, with a thread in the kernel's place.
TEST_F(VfsCommandTest, AnotherDriverIsBoundByItsAttributes) {
  const auto vfs = sysfs_.AddVfs(kPf, 1, {.netdev = "", .driver = ""});
  const std::string directory = "/sys/bus/pci/devices/" + vfs[0];
  sysfs_.Write(directory + "/driver_override", "(null)\n");
  sysfs_.Write("/sys/bus/pci/drivers/uio_pci_generic/bind", "");
  WriteFabric(R"({"driver": "uio_pci_generic"})");
  std::atomic<bool> stop = false;
  std::thread kernel([&] {
    while (!stop) {
      if (File("/sys/bus/pci/drivers_probe") == vfs[0]) {
        sysfs_.Link(directory + "/driver", "/sys/bus/pci/drivers/uio_pci_generic");
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  const Ended ended = Railctl("vfs apply");
  stop = true;
  kernel.join();
  EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("driver uio_pci_generic"), std::string::npos) << ended.out;
  EXPECT_EQ(File(directory + "/driver_override").substr(0, 15), "uio_pci_generic");
  EXPECT_EQ(Railctl("vfs plan").status, 0);
}

}  // namespace
}  // namespace railhead::testing
