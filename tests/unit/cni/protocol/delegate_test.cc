// Runs another plugin. Shell scripts stand in for it.
#include "cni/protocol/delegate.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "netns/base/state_folder.h"
#include "netns/base/unique_fd.h"
#include "tests/support/temp_root.h"

namespace railhead::testing {
namespace {

class DelegateTest : public ::testing::Test {
 protected:
  Result<std::string> Run(const std::string& script, const std::string& config = "{}",
                          const std::string& command = "ADD", std::vector<int> fds = {}) {
    return RunFor({}, script, config, command, std::move(fds));
  }
  Result<std::string> RunFor(CniRequest request, const std::string& script, const std::string& config = "{}",
                             const std::string& command = "ADD", std::vector<int> fds = {}) {
    temp_.Write("/bin/plugin", "#!/bin/bash\n" + script + "\n", true);
    request.path = {"/nowhere", temp_.directory() + "/bin"};
    return RunDelegate(request, {"plugin", command, config, std::move(fds)});
  }

  TempRoot temp_;
};

// A variable of this process for as long as a test runs.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST_F(DelegateTest, PassesConfigurationAndCommand) {
  const auto output = Run("cat; echo -n \"|$CNI_COMMAND\"", R"({"a":1})", "DEL");
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(*output, R"({"a":1}|DEL)");
}

constexpr const char* kPrintEnvironment =
    R"sh(printf '%s|' "$CNI_COMMAND" "$CNI_CONTAINERID" "$CNI_NETNS" "$CNI_IFNAME" "$CNI_ARGS" "$CNI_PATH"
printf '%s' "$(env | grep -c ^CNI_)")sh";

TEST_F(DelegateTest, TheEnvironmentIsTheRequests) {
  CniRequest request;
  request.container_id = "c1";
  request.netns = "/run/netns/x";
  request.ifname = "net1";
  request.args = {{"MAC", "02:00:00:00:00:01"}, {"IgnoreUnknown", "1"}, {"X", "a=b"}};
  const auto output = RunFor(request, kPrintEnvironment);
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(*output, "ADD|c1|/run/netns/x|net1|IgnoreUnknown=1;MAC=02:00:00:00:00:01;X=a=b|/nowhere:" +
                         temp_.directory() + "/bin|6");
}

// The call may be for another attachment, or come from a program that is not a CNI plugin. A variable that
// the request does not set must not reach the child from our environment.
TEST_F(DelegateTest, OurOwnCniVariablesDoNotGetThrough) {
  const Variable command("CNI_COMMAND", "ADD");
  const Variable container("CNI_CONTAINERID", "mine");
  const Variable netns("CNI_NETNS", "/run/netns/mine");
  const Variable ifname("CNI_IFNAME", "eth0");
  const Variable args("CNI_ARGS", "K8S_POD_UID=mine");
  const Variable path("CNI_PATH", "/mine");
  const auto output = RunFor({}, kPrintEnvironment, "{}", "GC");
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(*output, "GC|||||/nowhere:" + temp_.directory() + "/bin|2") << "CNI_COMMAND and CNI_PATH only";
}

TEST_F(DelegateTest, PassesOnTheRestOfTheEnvironment) {
  const Variable other("RAILHEAD_DELEGATE_TEST", "as it is");
  EXPECT_EQ(*Run("echo -n \"$RAILHEAD_DELEGATE_TEST\""), "as it is");
}

TEST_F(DelegateTest, CopesWithMoreThanPipesHold) {
  const std::string big(900000, 'x');
  const auto output = Run("cat", big);
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(*output, big);
}

TEST_F(DelegateTest, CopesWithChildThatDoesNotRead) {
  const auto output = Run("exec <&-; echo -n done", std::string(900000, 'x'));
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(*output, "done");
}

TEST_F(DelegateTest, PassesOnCniErrors) {
  const auto output =
      Run(R"(echo '{"cniVersion":"1.0.0","code":105,"msg":"no address left","details":"wait"}'; exit 1)");
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(output.error().message, "plugin ADD: no address left");
  EXPECT_EQ(output.error().hint, "wait");
}

TEST_F(DelegateTest, ForeignCodesAndMissingFieldsAreIoErrors) {
  const auto foreign = Run(R"(echo '{"code":4711,"msg":"odd"}'; exit 1)");
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, ErrorCode::kIo);
  EXPECT_EQ(foreign.error().message, "plugin ADD: odd");
  const auto empty = Run("echo '{}'; exit 3");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "plugin ADD: exit status 3");
}

TEST_F(DelegateTest, SaysHowItDied) {
  const auto garbage = Run("echo oops; exit 7");
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().code, ErrorCode::kIo);
  EXPECT_EQ(garbage.error().message, "plugin ADD: exit status 7 without a CNI error");
  const auto killed = Run("kill -9 $$");
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().message, "plugin ADD: killed by signal 9 without a CNI error");
}

// The child exits with 0: the caller judges its output.
TEST_F(DelegateTest, OutputOfSuccessComesBackAsItIs) {
  EXPECT_EQ(*Run("echo garbage"), "garbage\n");
  EXPECT_EQ(*Run("true"), "");
}

TEST_F(DelegateTest, EndlessOutputIsCutOff) {
  const auto output =
      Run("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().message, "plugin ADD: the delegated plugin prints without end");
}

TEST_F(DelegateTest, FindsOnlyExecutablesByName) {
  temp_.Write("/bin/plain", "not executable");
  CniRequest request;
  request.path = {temp_.directory() + "/bin"};
  EXPECT_EQ(RunDelegate(request, {"plain", "ADD", "{}", {}}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(RunDelegate(request, {"absent", "ADD", "{}", {}}).error().message,
            "plugin 'absent' is not in CNI_PATH " + temp_.directory() + "/bin");
  EXPECT_EQ(RunDelegate(request, {"../bin/plain", "ADD", "{}", {}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(RunDelegate(request, {"", "ADD", "{}", {}}).error().code, ErrorCode::kInvalid);
}

// The first in CNI_PATH that can be run; a file that cannot is passed over.
TEST_F(DelegateTest, SearchesTheWholePath) {
  temp_.Write("/first/plugin", "not executable");
  temp_.Write("/second/plugin", "#!/bin/bash\necho second\n", true);
  temp_.Write("/third/plugin", "#!/bin/bash\necho third\n", true);
  CniRequest request;
  for (const char* name : {"/first", "/second", "/third"}) request.path.push_back(temp_.directory() + name);
  EXPECT_EQ(*RunDelegate(request, {"plugin", "ADD", "{}", {}}), "second\n");
}

TEST_F(DelegateTest, NoExecutableFormatIsAnError) {
  temp_.Write("/bin/broken",
              "\x7f"
              "ELF nonsense",
              true);
  CniRequest request;
  request.path = {temp_.directory() + "/bin"};
  const auto output = RunDelegate(request, {"broken", "ADD", "{}", {}});
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().message.find("running " + temp_.directory() + "/bin/broken"), std::string::npos);
}

// The child holds a lock that it was given until the child ends, even if we end first. It does not inherit
// other descriptors.
TEST_F(DelegateTest, InheritsOneDescriptor) {
  const std::string path = temp_.directory() + "/locks/x.lock";
  auto lock = FileLock::Acquire(path, std::chrono::milliseconds(100));
  ASSERT_TRUE(lock);
  const std::string fd = std::to_string(lock->Fd());
  const auto inherited = Run("readlink /proc/self/fd/" + fd + " || echo none", "{}", "ADD", {lock->Fd()});
  EXPECT_EQ(*inherited, path + "\n");
  const auto not_inherited = Run("test -e /proc/self/fd/" + fd + " && readlink /proc/self/fd/" + fd +
                                 " | grep -c lock || echo none");
  EXPECT_EQ(*not_inherited, "none\n");
  EXPECT_TRUE((::fcntl(lock->Fd(), F_GETFD) & FD_CLOEXEC) != 0) << "ours stays close-on-exec";
}

TEST_F(DelegateTest, InheritsSeveralDescriptors) {
  std::vector<FileLock> locks;
  std::vector<int> fds;
  std::string script;
  std::string wanted;
  for (const char* name : {"a", "b", "c"}) {
    const std::string path = temp_.directory() + "/locks/" + name + ".lock";
    auto lock = FileLock::Acquire(path, std::chrono::milliseconds(100));
    ASSERT_TRUE(lock);
    fds.push_back(lock->Fd());
    script += "readlink /proc/self/fd/" + std::to_string(lock->Fd()) + " || echo none\n";
    wanted += path + "\n";
    locks.push_back(std::move(*lock));
  }
  EXPECT_EQ(*Run(script, "{}", "ADD", fds), wanted);
}

TEST_F(DelegateTest, KeepsTheSignalHandler) {
  const auto before = ::signal(SIGPIPE, SIG_DFL);
  (void)Run("exec <&-; true", std::string(900000, 'x'));
  EXPECT_EQ(::signal(SIGPIPE, before), SIG_DFL);
}

// A server that does not answer must not hold a device's locks for ever, whatever the plugin did before it
// waits.
class DelegateLimitTest : public DelegateTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(DelegateLimitTest, IsKilledWithAllItStarted) {
  const std::string pids = temp_.directory() + "/pids";
  temp_.Write("/bin/plugin",
              std::string("#!/bin/bash\n") + GetParam() + "\nsleep 1000 & echo $$ $! >" + pids + ".new; mv " +
                  pids + ".new " + pids + "; wait\n",
              true);
  CniRequest request;
  request.path = {temp_.directory() + "/bin"};
  DelegateCall call{"plugin", "DEL", "{}", {}};
  call.limit = std::chrono::seconds(2);
  bool refused = true;
  const auto output = RunDelegate(request, call, &refused);
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::kTimeout) << Describe(output.error());
  EXPECT_NE(output.error().message.find("plugin DEL"), std::string::npos);
  std::ifstream file(pids);
  pid_t self = 0;
  pid_t child = 0;
  ASSERT_TRUE(file >> self >> child);
  EXPECT_NE(::kill(self, 0), 0);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const std::string state = "/proc/" + std::to_string(child) + "/stat";
  const auto is_over = [&] {  // until its new parent reaps it, it is a zombie
    std::ifstream stat(state);
    const std::string text{std::istreambuf_iterator<char>(stat), {}};
    return text.empty() || text.find(") Z ") != std::string::npos;
  };
  while (!is_over() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(is_over()) << "what it started still runs";
}

INSTANTIATE_TEST_SUITE_P(Waiting, DelegateLimitTest,
                         ::testing::Values("", "exec >&-;", "echo '{}'; exec >&-;", "exec <&- >&- 2>&-;"));

// A process that the plugin started keeps the plugin's output open. The caller does not wait for it.
TEST_F(DelegateTest, EndsWithThePluginNotWithWhatItLeaves) {
  const std::string pid = temp_.directory() + "/pid";
  const auto output = Run("sleep 1000 & echo $! >" + pid + "; echo -n done");
  ASSERT_TRUE(output) << Describe(output.error());
  EXPECT_EQ(*output, "done");
  pid_t left = 0;
  ASSERT_TRUE(std::ifstream(pid) >> left);
  EXPECT_EQ(::kill(left, SIGKILL), 0) << "it is not ours to end";
}

TEST_F(DelegateTest, TellsARefusalFromACrash) {
  CniRequest request;
  request.path = {temp_.directory() + "/bin"};
  const auto refused_by = [&](const std::string& script) {
    temp_.Write("/bin/plugin", "#!/bin/bash\n" + script + "\n", true);
    bool refused = false;
    EXPECT_FALSE(RunDelegate(request, {"plugin", "ADD", "{}", {}}, &refused));
    return refused;
  };
  EXPECT_TRUE(refused_by(R"(echo '{"code":7,"msg":"no"}'; exit 1)"));
  EXPECT_FALSE(refused_by("exit 1"));
  EXPECT_FALSE(refused_by(R"(echo '{"code":7,"msg":"no"}'; kill -9 $$)"));
  EXPECT_FALSE(refused_by("exec yes"));
}

}  // namespace
}  // namespace railhead::testing
