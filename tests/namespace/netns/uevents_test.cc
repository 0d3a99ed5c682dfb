// Which of the kernel's device events start a check.
#include "netns/nl/uevents.h"

#include <gtest/gtest.h>

#include <string>

namespace railhead::testing {
namespace {

// "add@/devices/x" and then KEY=VALUE, each with its zero.
std::string Message(const std::string& path, const std::string& subsystem) {
  std::string text;
  for (const std::string& field : {"add@" + path, std::string("ACTION=add"), "DEVPATH=" + path,
                                   "SUBSYSTEM=" + subsystem, std::string("SEQNUM=7")}) {
    text += field;
    text += '\0';
  }
  return text;
}

TEST(UeventsTest, NicsAndWhatHangsOnThem) {
  const std::string function = "/devices/pci0000:40/0000:40:01.0/0000:43:00.1";
  EXPECT_TRUE(IsRelevantUevent(Message(function, "pci")));
  EXPECT_TRUE(IsRelevantUevent(Message(function + "/net/pf0v0", "net")));
  EXPECT_TRUE(IsRelevantUevent(Message(function + "/infiniband/mlx5_3", "infiniband")));
  EXPECT_TRUE(IsRelevantUevent(Message(function + "/mlx5_core.sf.2", "auxiliary")));
  EXPECT_TRUE(IsRelevantUevent(Message("/devices/virtual/vfio/17", "vfio")));
}

TEST(UeventsTest, EveryPodsVethIsNone) {
  EXPECT_FALSE(IsRelevantUevent(Message("/devices/virtual/net/veth12", "net")));
  EXPECT_FALSE(IsRelevantUevent(Message("/devices/pci0000:00/0000:00:1f.2/ata1", "block")));
  EXPECT_FALSE(IsRelevantUevent(""));
  EXPECT_FALSE(IsRelevantUevent("add@/devices/x"));
  EXPECT_FALSE(IsRelevantUevent(Message("/devices/x", "pcie_port")));
}

}  // namespace
}  // namespace railhead::testing
