// Device settings on the real kernel, with a veth for the device. Needs root.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <iterator>

#include "cni/attachment/restore_settings.h"
#include "netns/base/text.h"
#include "netns/linux_kernel.h"
#include "tests/support/netns/stand_in.h"

namespace railhead::testing {
namespace {

class DeviceKernelTest : public ::testing::Test {
 protected:
  DeviceState Read() { return Must(devices_->Read(link_)); }
  Result<void> Write(const std::string& name, const std::string& value) {
    DeviceState one;
    one.values.emplace(name, value);
    return devices_->Write(link_, FindDeviceField(name)->source, one);
  }

  LinuxKernel kernel_{Root()};
  NetNs ns_ = Must(NetNs::Current());
  NetNs other_ = MakeNetns();
  std::unique_ptr<RouteApi> route_ = OpenRoute(ns_);
  std::unique_ptr<DeviceApi> devices_ = Must(kernel_.OpenDevices(ns_));
  Link link_ = GetLink(*route_, AddVeth(ns_, "nic0", other_, "far0"));
  void TearDown() override { DeleteLink(ns_, link_.index); }
};

// Another value of the same form; the same value where a veth has no other.
std::string OtherValue(const DeviceField& field, const std::string& value) {
  if (field.name == "link.flags") return value == "4096" ? "4224" : "4096";  // MULTICAST, and NOARP
  if (field.name == "features.wanted") {
    std::string less = value;
    for (char& digit : less) {
      if (digit != '0') digit = '0';
    }
    return less;
  }
  if (field.name == "link.broadcast") return "020304050607";
  if (field.name == "qdisc.root") return "pfifo/00000180/64000000";
  if (field.name == "qdisc.ingress") return "ingress/0000ffff/";
  if (field.form == DeviceForm::kU32) return value == "20000" ? "20001" : "20000";
  return value == "1" ? "2" : "1";
}

// Changes each changeable field. Writing its first value again restores the whole device.
TEST_F(DeviceKernelTest, EveryWriteCanBeUndone) {
  const DeviceState before = Read();
  std::vector<std::string> changed;
  for (const auto& [name, value] : before.values) {
    const DeviceField& field = *FindDeviceField(name);
    ASSERT_TRUE(IsDeviceValue(field, value)) << name << " " << value;
    (void)Write(name, OtherValue(field, value));
    if (Read() == before) continue;
    changed.push_back(name);
    const auto left = attachment::RestoreSettings(*devices_, link_, before);
    ASSERT_TRUE(left) << Describe(left.error());
    EXPECT_TRUE(left->fields.empty()) << Describe(*left);
    ASSERT_EQ(Read().values, before.values) << name;
  }
  EXPECT_GE(changed.size(), 10U) << ::testing::PrintToString(changed);
  for (const char* name : {"link.flags", "link.group", "link.mode", "link.broadcast", "link.gso-max-size",
                           "qdisc.root", "qdisc.ingress", "features.wanted"})
    EXPECT_TRUE(Contains(changed, name)) << name;
}

TEST_F(DeviceKernelTest, AllAtOnce) {
  const DeviceState before = Read();
  for (const auto& [name, value] : before.values)
    (void)Write(name, OtherValue(*FindDeviceField(name), value));
  ASSERT_NE(Read().values, before.values);
  const auto left = attachment::RestoreSettings(*devices_, link_, before);
  ASSERT_TRUE(left) << Describe(left.error());
  EXPECT_TRUE(left->fields.empty()) << Describe(*left);
  EXPECT_EQ(Read().values, before.values);
}

// From here the kernel kills this process if it calls bpf(2), like systemd's filter for railheadd.
void DieOfBpf() {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_bpf, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{static_cast<unsigned short>(std::size(code)), code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0)
    ::_exit(2);
}

// railheadd restores settings that an ADD has read, including TCX programs, next to a program of the host.
TEST_F(DeviceKernelTest, ADaemonCallsNoBpf) {
  DeviceState before = Read();
  for (const char* programs : {"tcx.ingress", "tcx.egress", "xdp.generic"}) {
    for (const char* value : {"", "1"}) {
      before.values[programs] = value;
      ASSERT_TRUE(Write("link.group", "7"));
      const pid_t daemon = ::fork();
      if (daemon == 0) {
        DieOfBpf();
        LinuxKernel kernel(Root(), LinuxKernel::Bpf::kLeftAlone);
        const auto devices = kernel.OpenDevices(ns_);
        if (!devices) ::_exit(3);
        const auto left = attachment::RestoreSettings(**devices, link_, before);
        ::_exit(left && left->fields.empty() ? 0 : 4);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
      EXPECT_EQ(status, 0) << programs << " '" << value << "'";
      EXPECT_EQ(*Read().Find("link.group"), *before.Find("link.group"));
    }
  }
}

// The kernel removes qdiscs with the move, and keeps the rest.
TEST_F(DeviceKernelTest, WhatAMoveKeeps) {
  ASSERT_TRUE(Write("link.group", "7"));
  ASSERT_TRUE(Write("qdisc.root", "pfifo/00000180/64000000"));
  ASSERT_EQ(*Read().Find("qdisc.root"), "pfifo/00000180/64000000");
  Must(route_->MoveLink(link_.index, other_, "nic0", std::nullopt));
  const auto there = OpenRoute(other_);
  const Link moved = GetLink(*there, "nic0");
  const auto devices = Must(kernel_.OpenDevices(other_));
  const DeviceState after = Must(devices->Read(moved));
  EXPECT_EQ(*after.Find("link.group"), "7");
  EXPECT_EQ(*after.Find("qdisc.root"), "");
  EXPECT_EQ(after.Find("tcx.ingress"), nullptr) << "only of the own namespace";
  link_ = moved;
  Must(there->MoveLink(moved.index, ns_, "nic0", std::nullopt));
  link_ = GetLink(*route_, "nic0");
}

TEST_F(DeviceKernelTest, ADeviceThatIsGone) {
  const Link gone{.index = 4711, .name = "nosuch"};
  const auto read = devices_->Read(gone);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
  for (const DeviceField& field : DeviceFields()) {
    DeviceState one;
    one.values.emplace(field.name, "");
    if (field.form != DeviceForm::kList) continue;
    EXPECT_FALSE(devices_->Write(gone, field.source, one)) << field.name;
  }
}

}  // namespace
}  // namespace railhead::testing
