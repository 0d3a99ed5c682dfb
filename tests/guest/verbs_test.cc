// Unreliable datagrams on the real kernel, with soft RoCE on a pair of veths. The tests show what an unknown
// host on the rail can do to them, and what happens to their GID.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

#include "netns/verbs/datagrams.h"
#include "tests/support/eventually.h"
#include "tests/support/netns/guest_fixture.h"
#include "tests/support/netns/soft_roce_pair.h"

namespace railhead::testing {
namespace {

constexpr std::uint32_t kOurKey = 0x52487270;  // public: railheadd's source contains it
constexpr std::size_t kNicMtu = 1024;          // of soft RoCE on Ethernet's 1,500 bytes

// A queue pair of an unknown host, which sends anything to any destination.
class UnknownHost {
 public:
  explicit UnknownHost(const std::string& device, int gid_index)
      : device_(Must(VerbsDevice::Open(device))), gid_index_(gid_index) {
    domain_ = ibv_alloc_pd(device_.context());
    region_ = ibv_reg_mr(domain_, bytes_.data(), bytes_.size(), IBV_ACCESS_LOCAL_WRITE);
    queue_ = ibv_create_cq(device_.context(), 1, nullptr, nullptr, 0);
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = queue_;
    attributes.qp_type = IBV_QPT_UD;
    attributes.cap = {1, 1, 1, 1, 0};
    pair_ = ibv_create_qp(domain_, &attributes);
    ibv_qp_attr state{};
    state.qp_state = IBV_QPS_INIT;
    state.port_num = kVerbsPort;
    state.qkey = kOurKey;
    Works(ibv_modify_qp(pair_, &state, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    state = {};
    state.qp_state = IBV_QPS_RTR;
    Works(ibv_modify_qp(pair_, &state, IBV_QP_STATE));
    state.qp_state = IBV_QPS_RTS;
    Works(ibv_modify_qp(pair_, &state, IBV_QP_STATE | IBV_QP_SQ_PSN));
  }
  ~UnknownHost() {
    ibv_destroy_qp(pair_);
    ibv_destroy_cq(queue_);
    ibv_dereg_mr(region_);
    ibv_dealloc_pd(domain_);
  }
  UnknownHost(const UnknownHost&) = delete;
  UnknownHost& operator=(const UnknownHost&) = delete;

  void Send(const DatagramEnd& to, std::size_t size, std::uint32_t key = kOurKey) {
    ibv_ah_attr attributes{};
    attributes.is_global = 1;
    attributes.port_num = kVerbsPort;
    const IpAddress gid = GidOf(to.address);
    std::memcpy(attributes.grh.dgid.raw, gid.Data(), sizeof attributes.grh.dgid.raw);
    attributes.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
    attributes.grh.hop_limit = 64;
    ibv_ah* const handle = ibv_create_ah(domain_, &attributes);
    Works(handle != nullptr ? 0 : errno);
    ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes_.data()), static_cast<std::uint32_t>(size),
                  region_->lkey};
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.ud.ah = handle;
    request.wr.ud.remote_qpn = to.number;
    request.wr.ud.remote_qkey = key;
    ibv_send_wr* refused = nullptr;
    Works(ibv_post_send(pair_, &request, &refused));
    ibv_wc sent{};
    EXPECT_TRUE(Eventually([&] { return ibv_poll_cq(queue_, 1, &sent) == 1; }));
    EXPECT_EQ(sent.status, IBV_WC_SUCCESS) << ibv_wc_status_str(sent.status);
    ibv_destroy_ah(handle);
  }

 private:
  static void Works(int failed) {
    if (failed != 0) Die(SysError(failed, "setting up a queue pair"));
  }

  VerbsDevice device_;
  const int gid_index_;
  std::array<std::uint8_t, 4096> bytes_{};
  ibv_pd* domain_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_qp* pair_ = nullptr;
};

class DatagramsTest : public ::testing::Test {
 protected:
  // The datagrams that arrive, up to and including the first of this size.
  static std::vector<Datagrams::Received> UpToOneOf(Datagrams& datagrams, std::size_t size) {
    std::vector<Datagrams::Received> all;
    EXPECT_TRUE(Eventually([&] {
      for (const auto& one : Must(datagrams.Take()).received) all.push_back(one);
      return !all.empty() && all.back().size == size;
    })) << "no datagram of "
        << size << " bytes came";
    return all;
  }

  SoftRocePair pair_;
};

TEST_F(DatagramsTest, GoBothWays) {
  Datagrams here = pair_.OpenHere();
  Datagrams there = pair_.OpenThere();
  const std::array<std::uint8_t, 3> question = {'a', 's', 'k'};
  Must(here.Send(there.Own(), question, 7));
  const auto asked = UpToOneOf(there, question.size());
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].from, here.Own());
  EXPECT_TRUE(std::ranges::equal(asked[0].Payload(), question));
  Must(there.Send(asked[0].from, std::array<std::uint8_t, 1>{'!'}, 7));
  EXPECT_EQ(UpToOneOf(here, 1).at(0).from, there.Own());
}

// Any host on the rail can send a datagram that is longer than its buffer. It would end a NIC's queue pair
// (IBV_WC_LOC_LEN_ERR). Soft RoCE always ignores it, so datagrams.cc asserts that the buffers are large
// enough.
TEST_F(DatagramsTest, DatagramsOfAnUnknownHostEndNothing) {
  Datagrams here = pair_.OpenHere();
  UnknownHost unknown_host("rxe_there", SoftRocePair::GidAt("rxe_there", "10.100.0.2").index);
  constexpr std::array<std::size_t, 5> kSizes = {Datagrams::kMostBytes + 1, kNicMtu, 0, kNicMtu - 1, 500};
  std::set<std::size_t> heard;
  // More than the buffers hold before Take() is called.
  for (std::size_t i = 0; i < 2 * Datagrams::kWaiting; ++i)
    unknown_host.Send(here.Own(), kSizes[i % kSizes.size()]);
  const auto flood = Must(here.Take());
  for (const auto& one : flood.received) heard.insert(one.size);
  while (Must(here.Take()).more) continue;
  for (const std::size_t size : kSizes) unknown_host.Send(here.Own(), size);
  unknown_host.Send(here.Own(), Datagrams::kMostBytes, kOurKey + 1);
  unknown_host.Send(here.Own(), 21);
  for (const auto& one : UpToOneOf(here, 21)) heard.insert(one.size);
  EXPECT_EQ(heard, (std::set<std::size_t>{0, 21}))
      << "those that are too long, or have no key, are passed over";
  EXPECT_FALSE(here.IsLost());

  Datagrams there = pair_.OpenThere();
  Must(here.Send(there.Own(), std::array<std::uint8_t, 2>{}, 7));
  EXPECT_EQ(UpToOneOf(there, 2).back().from, here.Own());
}

TEST_F(DatagramsTest, AGidThatMovesIsMissed) {
  Datagrams here = pair_.OpenHere();
  const int before = here.gid().index;
  EXPECT_TRUE(here.HasItsGid());
  const int index = pair_.link();
  Must(pair_.route().DeleteAddress(index, *IpPrefix::Parse("10.100.0.1/24")));
  EXPECT_TRUE(Eventually([&] { return !here.HasItsGid(); }));
  // Its slot stays free until another GID takes it.
  Must(pair_.route().AddAddress(index, *IpPrefix::Parse("10.100.0.3/24")));
  EXPECT_EQ(SoftRocePair::GidAt("rxe_here", "10.100.0.3").index, before);
  Must(pair_.route().AddAddress(index, *IpPrefix::Parse("10.100.0.1/24")));
  EXPECT_NE(SoftRocePair::GidAt("rxe_here", "10.100.0.1").index, before);
  EXPECT_FALSE(here.HasItsGid());
  EXPECT_TRUE(Eventually([&] { return here.IsLost(); })) << "the device tells of it";
}

TEST_F(DatagramsTest, OthersGidsComeAndGo) {
  Datagrams here = pair_.OpenHere();
  const int index = pair_.link();
  Must(pair_.route().AddAddress(index, *IpPrefix::Parse("10.100.0.3/24")));
  (void)SoftRocePair::GidAt("rxe_here", "10.100.0.3");
  Must(pair_.route().DeleteAddress(index, *IpPrefix::Parse("10.100.0.3/24")));
  EXPECT_TRUE(Eventually([&] { return !SoftRocePair::FindGid("rxe_here", "10.100.0.3"); }));
  EXPECT_FALSE(here.IsLost());
  EXPECT_TRUE(here.HasItsGid());
}

TEST_F(DatagramsTest, WhoDoesNotAnswerIsNoNeighbour) {
  Datagrams here = pair_.OpenHere();
  const auto sent = here.Send({*IpAddress::Parse("10.100.0.99"), 17}, std::array<std::uint8_t, 1>{}, 7);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::kNotFound) << sent.error().message;
}

// In shared mode the kernel shows the node the processes of every namespace, but not the kernel's own clients
// of the device.
TEST_F(DatagramsTest, TheKernelSaysWhichProcessHasWhatOfADevice) {
  LinuxKernel kernel{Root()};
  const auto rdma = Must(kernel.OpenRdma(Must(kernel.HostNetns())));
  EXPECT_TRUE(Must(rdma->ListUsers("rxe_here")).empty());
  EXPECT_TRUE(Must(rdma->ListUsers("rxe_nowhere")).empty());
  {
    const VerbsDevice only_open = Must(VerbsDevice::Open("rxe_here"));
    const auto users = Must(rdma->ListUsers("rxe_here"));
    ASSERT_EQ(users.size(), 1U);
    EXPECT_EQ(users[0], (RdmaUser{static_cast<std::uint32_t>(::getpid()), {{"context", 1}}}));
    EXPECT_TRUE(Must(rdma->ListUsers("rxe_there")).empty()) << "of this device alone";
    const Datagrams more = pair_.OpenHere();
    const auto both = Must(rdma->ListUsers("rxe_here"));
    ASSERT_EQ(both.size(), 1U);
    for (const char* kind : {"context", "PD", "CQ", "QP", "MR"})
      EXPECT_GE(both[0].resources.count(kind), 1U) << kind;
    EXPECT_EQ(both[0].resources.at("context"), 2);
  }
  EXPECT_TRUE(Eventually([&] { return Must(rdma->ListUsers("rxe_here")).empty(); }));
}

TEST_F(DatagramsTest, APortThatGoesDownIsLost) {
  Datagrams here = pair_.OpenHere();
  LinkChange down;
  down.up = false;
  Must(pair_.route().ChangeLink(pair_.link(), down));
  EXPECT_TRUE(Eventually([&] { return here.IsLost(); }));
}

}  // namespace
}  // namespace railhead::testing
