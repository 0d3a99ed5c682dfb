// The ports that tests keep for their servers.
#include "tests/support/kubernetes/server_process.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <set>
#include <vector>

#include "tests/support/kubernetes/scripted_server.h"

namespace railhead::testing {
namespace {

sockaddr_in At(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<in_port_t>(port));
  return address;
}

// So many that some would meet if the kernel gave one twice: it draws from some 7,000.
TEST(ReservedPortTest, IsGivenOnce) {
  std::vector<ReservedPort> reserved(500);
  std::set<int> numbers;
  for (const ReservedPort& port : reserved)
    EXPECT_TRUE(numbers.insert(port.number()).second) << port.number();
  for (int i = 0; i < 100; ++i) {
    // Gone with each turn: two of them may well have the same one.
    const ScriptedServer server({});
    EXPECT_FALSE(numbers.contains(std::stoi(server.url().substr(server.url().rfind(':') + 1))))
        << server.url();
  }
}

// Go's net.Listen does the same. The test repeats it after the server was killed.
TEST(ReservedPortTest, AServerListensThere) {
  const ReservedPort reserved;
  const sockaddr_in address = At(reserved.number());
  const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
  for (int i = 0; i < 2; ++i) {
    const UniqueFd before(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(before.get(), generic, sizeof(address)), -1);
    const UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ASSERT_EQ(::setsockopt(server.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    ASSERT_EQ(::bind(server.get(), generic, sizeof(address)), 0) << i;
    ASSERT_EQ(::listen(server.get(), 1), 0);
    const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), generic, sizeof(address)), 0) << i;
  }
}

}  // namespace
}  // namespace railhead::testing
