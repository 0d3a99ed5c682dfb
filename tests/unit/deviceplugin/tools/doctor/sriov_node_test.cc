// VFs, limits, modules, firmware.
#include "tests/unit/deviceplugin/tools/doctor/support.h"

namespace railhead::testing {
namespace {

using doctor::Status;

TEST(VfCountTest, NoVfs) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].vfs.clear();
  const auto none = doctor::CheckVfCount(node);
  Expect(none, Status::kFailure, "pf1 (0000:13:00.0) has 0 of 16 VFs");
  EXPECT_NE(none.Fix().find("railctl vfs apply"), std::string::npos);
  node.pfs[1].total_vfs = 0;
  const auto impossible = doctor::CheckVfCount(node);
  Expect(impossible, Status::kFailure, "can have no VFs");
  EXPECT_NE(impossible.Fix().find("SRIOV_EN"), std::string::npos);
}

TEST(VfCountTest, PoolsOfPfsNeedNone) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].vfs.clear();
  Fabric fabric = *node.fabric;
  fabric.pools[0].device = PoolDevice::kPf;
  node.fabric = fabric;
  Expect(doctor::CheckVfCount(node), Status::kSkipped, "no pool hands out VFs");
}

TEST(AriTest, ManyVfsWithoutAri) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[0].sriov_control = std::uint16_t{0x09};
  Expect(doctor::CheckAri(node), Status::kNote, "pf0 (0000:03:00.0), with up to 16 VFs");
  node.pfs[0].total_vfs = 7;
  EXPECT_EQ(doctor::CheckAri(node).status(), Status::kOk);
}

TEST(VfOrderTest, OutOfOrder) {
  doctor::NodeFacts node = GoodNode();
  // A VF that was unbound and bound again.
  node.rdma_order = std::vector<std::string>{"v01", "v10", "v11", "v00"};
  Expect(doctor::CheckVfOrder(node), Status::kWarning, "v00 (VF 0 of pf0 (0000:03:00.0)) comes after v11");
  // The second PF's VFs were made first.
  node.rdma_order = std::vector<std::string>{"v10", "v11", "v00", "v01"};
  Expect(doctor::CheckVfOrder(node), Status::kWarning, "v00 (VF 0 of pf0 (0000:03:00.0)) comes after v11");
}

TEST(VfOrderTest, OnlyWhatIsHere) {
  doctor::NodeFacts node = GoodNode();
  // In exclusive mode those of pods are not seen; soft RoCE is no VF.
  node.rdma_order = std::vector<std::string>{"rxe0", "v00", "v11"};
  Expect(doctor::CheckVfOrder(node), Status::kOk, "2 RDMA devices");
  node.rdma_order = std::vector<std::string>{"mlx5_0"};
  Expect(doctor::CheckVfOrder(node), Status::kSkipped, "no VF of a rail");
}

TEST(BandwidthTest, VfsThatShare) {
  doctor::NodeFacts node = GoodNode();
  VfState unlimited;
  unlimited.max_tx_rate = 0;
  node.pfs[0].vf_states = std::vector<VfState>{unlimited, VfState{}};
  Expect(doctor::CheckBandwidth(node), Status::kNote, "2 VFs share its port, 2 of them without a limit");
  node.pfs[0].vf_states = doctor::Fact<std::vector<VfState>>::Unknown("not here");
  Expect(doctor::CheckBandwidth(node), Status::kNote, "not known (not here)");
  node.pfs[0].vfs.pop_back();
  EXPECT_EQ(doctor::CheckBandwidth(node).status(), Status::kOk);
}

TEST(CablingCheckTest, WrongUnknownAndUnchecked) {
  doctor::NodeFacts node = GoodNode();
  lldp::LeafReport leaves = GoodLeaves();
  leaves.rails[1].cabling = lldp::Cabling::kWrong;
  leaves.rails[1].because = "swapped with rail0";
  node.leaves = leaves;
  Expect(doctor::CheckCabling(node), Status::kWarning, "rail1 hangs on leaf1, port swp1: swapped with rail0");
  leaves = GoodLeaves();
  leaves.rails[1].cabling = lldp::Cabling::kUnknown;
  leaves.rails[1].neighbour.reset();
  leaves.rails[1].because = "no carrier";
  node.leaves = leaves;
  Expect(doctor::CheckCabling(node), Status::kNote, "rail1: nothing is heard of its switch, no carrier");
  leaves.rails[1].expected.clear();
  leaves.rails[0].cabling = lldp::Cabling::kUnchecked;
  node.leaves = leaves;
  Expect(doctor::CheckCabling(node), Status::kOk, "rail0: leaf0");
}

TEST(MemlockTest, ALimit) {
  doctor::NodeFacts node = GoodNode();
  node.runtimes = std::vector<doctor::ProcessFacts>{{4711, "containerd", std::string("8388608")}};
  const auto verdict = doctor::CheckMemlock(node);
  Expect(verdict, Status::kWarning, "containerd (process 4711) may lock 8388608 bytes only");
  EXPECT_NE(verdict.Fix().find("LimitMEMLOCK=infinity"), std::string::npos);
  node.runtimes = std::vector<doctor::ProcessFacts>{};
  Expect(doctor::CheckMemlock(node), Status::kSkipped, "hostPID");
}

TEST(ModulesTest, WhatIsMissing) {
  doctor::NodeFacts node = GoodNode();
  node.rdma_cm = false;
  Expect(doctor::CheckModules(node), Status::kWarning, "rdma_ucm");
  node.verbs = false;
  Expect(doctor::CheckModules(node), Status::kFailure, "ib_uverbs");
  node = GoodNode();
  node.pfs[1].rdma.clear();
  const auto verdict = doctor::CheckModules(node);
  Expect(verdict, Status::kFailure, "pf1 (0000:13:00.0) (mlx5_core) has no RDMA device");
  EXPECT_EQ(verdict.Fix(), "modprobe mlx5_ib");
  node.pfs[1].netdev.clear();  // in a pod
  EXPECT_EQ(doctor::CheckModules(node).status(), Status::kOk);
}

TEST(ModulesTest, SoftRoce) {
  doctor::NodeFacts node = GoodNode();
  Fabric fabric = *node.fabric;
  fabric.rails[1].soft_roce = true;
  node.fabric = fabric;
  node.pfs[1].rdma.clear();
  Expect(doctor::CheckModules(node), Status::kNote, "rdma_rxe is not loaded");
  node.rxe = true;
  EXPECT_EQ(doctor::CheckModules(node).status(), Status::kOk);
}

TEST(FirmwareTest, OneKindOneFirmware) {
  doctor::NodeFacts node = GoodNode();
  node.pfs[1].firmware = std::string("28.39.3560");
  Expect(doctor::CheckFirmware(node), Status::kWarning,
         "pf1 (0000:13:00.0): 15b3:1021, mlx5_core, firmware 28.39.3560, unlike pf0 (0000:03:00.0) with "
         "28.41.1000");
  node.pfs[1].device = 0x1017;  // another kind of NIC
  EXPECT_EQ(doctor::CheckFirmware(node).status(), Status::kOk);
}

TEST(RecordsTest, UnreadableEntriesAndSubstituteNames) {
  doctor::NodeFacts node = GoodNode();
  EXPECT_EQ(doctor::CheckRecords(node).status(), Status::kOk);
  doctor::RecordFacts records;
  records.displaced["0000:43:10.0"] = "eth13";
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kWarning, "another interface is called eth13");
  records.displaced.clear();
  records.altered_specs = {"railhead-0000:43:10.0.json"};
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kWarning,
         "/run/cdi/railhead-0000:43:10.0.json was removed or changed");
  records.altered_specs.clear();
  records.store_extensions = 2;
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kNote, "2 times; nothing was lost");
  records.claimants.push_back({*MacAddress::Parse("02:00:00:00:00:07"), {}, 5, "jobs/liar", {}});
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kWarning, "02:00:00:00:00:07 (pod jobs/liar) claims");
  records.claimants.clear();
  records.store_error = Error{ErrorCode::kIo, "page 7 is missing", "railctl ipam", 0};
  node.records = records;
  Expect(doctor::CheckRecords(node), Status::kFailure, "the address store cannot be read: page 7 is missing");
  records.store_error = std::nullopt;
  records.unreadable.push_back({{"rails", "c1", "net1"}, "/run/x.json", {"0000:43:10.1"}, {}});
  node.records = records;
  const auto verdict = doctor::CheckRecords(node);
  Expect(verdict, Status::kFailure, "c1/rails@net1 of 0000:43:10.1 cannot be read");
  EXPECT_NE(verdict.Fix().find("railctl journal restore /run/x.json"), std::string::npos);
}

}  // namespace
}  // namespace railhead::testing
