// A pod's user who can see the host's files. The user is root in its own user, mount and network namespaces.
// The tests show what it can change in other pods' attachments, and which sockets it can use. Needs root, to
// become another user.
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include "cni/state/bind_client.h"
#include "cni/state/bind_protocol.h"
#include "cni/state/paths.h"
#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/base/unique_fd.h"
#include "tests/support/plugin/plugin_fixture.h"
#include "tests/support/service/bind_server.h"
#include "tests/system/hardening/outside.h"

namespace railhead::testing {
namespace {
namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

void WriteTo(const char* path, const std::string& text) {
  const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (fd.valid()) (void)!::write(fd.get(), text.data(), text.size());
}

// Becomes the pod's user for good. Where users may not make namespaces, it has none of its own.
void BecomePodUser() {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
      ::setresuid(kNobody, kNobody, kNobody) != 0)
    ::_exit(1);
  (void)::prctl(PR_SET_DUMPABLE, 1);  // it owns the files in /proc/self again
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0) return;
  WriteTo("/proc/self/setgroups", "deny");
  WriteTo("/proc/self/uid_map", "0 65534 1");
  WriteTo("/proc/self/gid_map", "0 65534 1");
}

// A process of the pod's user. Line() reads what `work` writes to its descriptor.
class PodProcess {
 public:
  explicit PodProcess(const std::function<void(int out)>& work) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe";
    from_.Reset(ends[0]);
    const UniqueFd to(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    BecomePodUser();
    work(to.get());
    ::_exit(0);
  }
  PodProcess(const PodProcess&) = delete;
  PodProcess& operator=(const PodProcess&) = delete;
  ~PodProcess() {
    from_.Reset();
    (void)::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  // One line; "" at its end.
  std::string Line() {
    std::string line;
    for (char c = 0; ::read(from_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  UniqueFd from_;
  pid_t pid_ = -1;
};

void Say(int out, const std::string& text) {
  const std::string line = text + "\n";
  (void)!::write(out, line.data(), line.size());
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// The operations that it could do on `path`, which is neither its own nor public.
std::string CouldDoTo(const std::string& path, bool readable) {
  std::string could;
  struct stat status {};
  const bool directory = ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (UniqueFd(::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC)).valid()) could += " write";
  if (!readable && UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)).valid())
    could += " read";
  if (::chmod(path.c_str(), 0777) == 0) could += " chmod";
  if (::rename(path.c_str(), (path + ".taken").c_str()) == 0) could += " rename";
  if (directory &&
      UniqueFd(::open((path + "/planted").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).valid())
    could += " plant";
  if (directory && ::symlink("/etc/passwd", (path + "/link").c_str()) == 0) could += " link";
  if ((directory ? ::rmdir(path.c_str()) : ::unlink(path.c_str())) == 0) could += " remove";
  return could;
}

class PodUserTest : public PluginFixture {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
    PluginFixture::SetUp();
    // Otherwise the user could not reach anything, but for the wrong reason.
    ASSERT_EQ(::chmod(sysfs_.directory().c_str(), 0755), 0);
  }
  [[nodiscard]] std::string Path(const std::string& path) const { return sysfs_.directory() + path; }
};

TEST_F(PodUserTest, ChangesNothingOfAnotherPods) {
  Allocate({vfs_[0][0]});
  ASSERT_TRUE(Add({.config = Usual()}));
  Allocate({vfs_[0][1]}, DeviceNodeMode::kMount);
  ASSERT_TRUE(Add({.container = "c2", .ifname = "net2", .config = Usual(1)}));
  std::vector<std::string> paths;
  for (const char* state : {"/run/railhead", "/run/cdi", "/var/lib/railhead"}) {
    paths.push_back(Path(state));
    for (const auto& entry : fs::recursive_directory_iterator(Path(state))) paths.push_back(entry.path());
  }
  ASSERT_GT(paths.size(), 15U);
  fs::create_directories(Path("/free"));
  ASSERT_EQ(::chmod(Path("/free").c_str(), 0777), 0);
  const std::string before = ListingOf(Path("/run")) + ListingOf(Path("/var/lib"));
  PodProcess pod([&](int out) {
    Say(out, CouldDoTo(Path("/free"), true));
    for (const std::string& path : paths) {
      struct stat status {};
      // Every user may read these: links, folders, and files that are mounted into containers.
      const bool for_all = path.find("/run/cdi/") != std::string::npos ||
                           path.find("/nccl") != std::string::npos || ::lstat(path.c_str(), &status) != 0 ||
                           !S_ISREG(status.st_mode);
      if (const std::string could = CouldDoTo(path, for_all); !could.empty()) Say(out, path + ":" + could);
    }
    Say(out, "done");
  });
  EXPECT_EQ(pod.Line(), " plant link") << "what everybody may do it can do, so the rest was refused";
  for (std::string line = pod.Line(); line != "done"; line = pod.Line()) {
    ASSERT_NE(line, "") << "it has died";
    ADD_FAILURE() << line;
  }
  EXPECT_EQ(ListingOf(Path("/run")) + ListingOf(Path("/var/lib")), before);
}

TEST_F(PodUserTest, IsNotAnsweredByTheSocketForAdd) {
  std::atomic<int> asked{0};
  // The process that starts the server may have any umask.
  const mode_t umask_before = ::umask(0);
  const auto server = StartBindServer(sysfs_.root(), [&](const BindRequest& request) {
    ++asked;
    return Result<Bindings>(Bindings{{request.slots.front(), "0000:43:00.1"}});
  });
  ::umask(umask_before);
  ASSERT_TRUE(server) << Describe(server.error());
  const std::string path = paths::BindSocket(sysfs_.root());
  const BindRequest request{"uid", "c1", {"slot-1"}, "ns/pod"};
  const auto ask = [&](int out) {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = AddressOf(path);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return Say(out, errno == EACCES ? "may not connect" : "cannot connect");
    const std::string line = FormatBindRequest(request).value();
    (void)::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL);
    char answer = 0;
    Say(out, ::recv(fd.get(), &answer, 1, 0) == 1 ? "answered" : "hung up");
  };
  EXPECT_EQ(PodProcess(ask).Line(), "may not connect");
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(PodProcess(ask).Line(), "hung up") << "it is asked who it is, too";
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(BindSlots(sysfs_.root(), request)) << "root is answered as ever";
  EXPECT_EQ(asked, 1);
}

// A socket in the place of railheadd's: ADD would move the device that this socket names.
TEST_F(PodUserTest, DoesNotAnswerInThePlaceOfRailheadd) {
  const std::string path = paths::BindSocket(sysfs_.root());
  fs::create_directories(fs::path(path).parent_path());
  ASSERT_EQ(::chmod(fs::path(path).parent_path().c_str(), 0777), 0);
  PodProcess pod([&](int out) {
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un address = AddressOf(path);
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener.get(), 1) != 0)
      return Say(out, "cannot listen");
    Say(out, "listening");
    const UniqueFd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string line = FormatBindAnswer(Bindings{{"slot-1", "0000:43:00.1"}});
    (void)::send(connection.get(), line.data(), line.size(), MSG_NOSIGNAL);
  });
  ASSERT_EQ(pod.Line(), "listening");
  const auto bound = BindSlots(sysfs_.root(), {"uid", "c1", {"slot-1"}, "ns/pod"});
  ASSERT_FALSE(bound);
  EXPECT_NE(bound.error().message.find("the process that listens there is not root's"), std::string::npos)
      << bound.error().message;
}

}  // namespace
}  // namespace railhead::testing
