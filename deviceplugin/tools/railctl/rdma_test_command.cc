// railctl rdma-test: what RDMA between pods, host and other nodes really does.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cni/state/journal.h"
#include "deviceplugin/support/help/help.h"
#include "deviceplugin/support/http/http_address.h"
#include "deviceplugin/tools/railctl/commands.h"
#include "deviceplugin/tools/railctl/node_records.h"
#include "deviceplugin/tools/railctl/output.h"
#include "deviceplugin/tools/railctl/print.h"
#include "deviceplugin/tools/railctl/subject.h"
#include "deviceplugin/tools/rdma_test/interrupts.h"
#include "deviceplugin/tools/rdma_test/report.h"
#include "deviceplugin/tools/rdma_test/test_runner.h"
#include "netns/base/text.h"

namespace railhead::railctl {
namespace {

using rdma_test::Interrupts;
using rdma_test::TestEnd;
using rdma_test::TestRecord;

struct RdmaTestOptions {
  std::vector<std::string> ends;
  rdma_test::TestParameters parameters;
  rdma_test::PlanOptions plan;
  std::string listen;
  std::string key_file;
  int wait = 60;
  Output output;
};

// "CONTAINER@DEVICE" of an end that is said by another name of this node. The others stay.
Result<std::string> WithContainer(const Root& root, const NodeRecords& records, const std::string& said) {
  const std::size_t at = std::min(said.rfind('@'), said.size());
  const std::string name = said.substr(0, at);
  if (name.empty() || name == "host" || name.starts_with('/') || http::ParseHttpAddress(name)) return said;
  const Subject subject = RH_TRY(FindSubject(root, records, name));
  std::set<std::string> containers;
  for (const JournalEntry& entry : records.journal.entries) {
    if (Contains(subject.containers, entry.key.container_id)) containers.insert(entry.key.container_id);
  }
  if (containers.size() == 1) return *containers.begin() + said.substr(at);
  if (containers.empty()) {
    return Fail(ErrorCode::kNotFound, "the " + subject.Title() + " has no attachment",
                "see railctl journal list for all attachments");
  }
  return Fail(ErrorCode::kInvalid,
              "the " + subject.Title() +
                  " has several sandboxes: " + Join({containers.begin(), containers.end()}, ", "),
              "give a container id");
}

bool IsHost(const TestEnd& end) {
  return end.netns.empty() && end.remote.empty();
}

// A line for each test as it ends, since a matrix takes its time; the table comes at the end.
void PrintProgress(const TestRecord& record) {
  if (record.outcome) {
    SayProgress(record.from + " -> " + record.to + " " + record.rail);
  } else {
    (void)Complain(record.outcome.error(), kFailed);
  }
}

int Test(const Root& root, RdmaTestOptions& options) {
  auto keys = rdma_test::ReadKeys(options.key_file);
  if (!keys) return Complain(keys.error(), kFailed);
  options.parameters.keys = *std::move(keys);
  const auto ends = FindTestEnds(root, options.ends);
  if (!ends) return Complain(ends.error(), kFailed);
  const auto tests = rdma_test::PlanTests(*ends, options.plan);
  if (!tests) return Complain(tests.error(), kFailed);
  const auto interrupts = Interrupts::Catch();
  if (!interrupts) return Complain(interrupts.error(), kFailed);
  std::vector<TestRecord> records;
  bool interrupted = false;
  for (const auto& test : *tests) {
    const TestEnd& from = (*ends)[test.from];
    const TestEnd& to = (*ends)[test.to];
    auto outcome = rdma_test::RunTest(from, to, test, options.parameters, *interrupts);
    interrupted = !outcome && outcome.error().message == rdma_test::kInterrupted;
    if (interrupted) break;
    const int host_ends = static_cast<int>(IsHost(from)) + static_cast<int>(IsHost(to));
    records.push_back({from.name, to.name, test.from_rail.rail, host_ends, std::move(outcome)});
    PrintProgress(records.back());
  }
  options.output.PrintTableOf(ReportOf(records, options.parameters, interrupted), &rdma_test::Report::tests);
  if (interrupted)
    (void)std::fprintf(stderr, "railctl: interrupted: %zu of %zu tests\n", records.size(), tests->size());
  const bool well = !interrupted && std::ranges::all_of(records, [](const TestRecord& record) {
    return record.outcome.has_value();
  });
  return well ? kDone : kFailed;
}

int Serve(const Root& root, const RdmaTestOptions& options) {
  if (options.ends.size() != 1) {
    return Complain({ErrorCode::kInvalid, "--listen answers with one end of this node", "", 0}, kUsage);
  }
  rdma_test::ListenOptions listening;
  const auto address = http::ParseHttpAddress(options.listen);
  if (!address) return Complain(address.error(), kUsage);
  const auto ends = FindTestEnds(root, options.ends);
  if (!ends) return Complain(ends.error(), kFailed);
  if (!ends->front().remote.empty()) {
    return Complain({ErrorCode::kInvalid, "--listen answers with an end of this node", "", 0}, kUsage);
  }
  auto keys = rdma_test::ReadKeys(options.key_file);
  if (!keys) return Complain(keys.error(), kFailed);
  listening.keys = *std::move(keys);
  const auto interrupts = Interrupts::Catch();
  if (!interrupts) return Complain(interrupts.error(), kFailed);
  listening.address = *address;
  listening.plan = options.plan;
  listening.wait = std::chrono::seconds(options.wait);
  const auto served = Listen(ends->front(), listening, *interrupts, [](const Result<void>& test) {
    if (!test) (void)Complain(test.error(), kFailed);
  });
  if (!served) return Complain(served.error(), kFailed);
  if (served->tests == 0) {
    (void)std::printf("no test came\n");
  } else {
    (void)std::printf("%d tests, %d failed\n", served->tests, served->failed);
  }
  return served->tests > 0 && served->failed == 0 ? kDone : kFailed;
}

void AddRanges(CLI::App* command, RdmaTestOptions* options) {
  command->add_option("--size", options->parameters.size, "bytes of one write of the bandwidth run")
      ->check(CLI::Range(rdma_test::kMinSize, rdma_test::kMaxSize))
      ->capture_default_str();
  command->add_option("--depth", options->parameters.depth, "writes in flight")
      ->check(CLI::Range(1, rdma_test::kMaxDepth))
      ->capture_default_str();
  command->add_option("--duration", options->parameters.seconds, "seconds of each of the three runs")
      ->check(CLI::Range(1, rdma_test::kMaxSeconds))
      ->capture_default_str();
  command
      ->add_option("--timeout", options->parameters.timeout,
                   "of the queue pairs: a retry after 4.096 us * 2^N, 7 times")
      ->check(CLI::Range(1, rdma_test::kMaxTimeout))
      ->capture_default_str();
  command->add_option("--gid-index", options->plan.gid_index, "instead of what the NCCL configuration says")
      ->check(CLI::Range(0, 255));
  command->add_option("--traffic-class", options->plan.traffic_class, "instead of the rail's")
      ->check(CLI::Range(0, 255));
  command->add_option("--service-level", options->plan.service_level, "instead of the rail's")
      ->check(CLI::Range(0, rdma_test::kMaxServiceLevel));
}

}  // namespace

Result<std::vector<TestEnd>> FindTestEnds(const Root& root, const std::vector<std::string>& said) {
  const NodeRecords records = ReadNodeRecords(root);
  std::vector<TestEnd> ends;
  for (const std::string& one : said) {
    std::optional<std::uint64_t> inode;
    if (one.starts_with('/')) inode = RH_TRY(NetNs::Open(one.substr(0, one.rfind('@')))).inode();
    const std::string known = RH_TRY(WithContainer(root, records, one));
    ends.push_back(RH_TRY(rdma_test::ResolveEnd(known, records.journal.entries, inode)));
    if (known != one) ends.back().name = one;
  }
  return ends;
}

void AddRdmaTestCommand(CLI::App* app, const Root& root, int* status) {
  auto options = std::make_shared<RdmaTestOptions>();
  CLI::App* command = app->add_subcommand(
      "rdma-test", "Measure RDMA bandwidth and latency between pods, host and other nodes");
  command
      ->add_option(
          "END", options->ends,
          "two or more, each with each, or with --listen the one that answers: host, a network namespace's "
          "path, NAMESPACE/NAME of a pod, a "
          "container id, or a device or address that a pod has; with @DEVICE: this one; ADDRESS:PORT: "
          "--listen on another node")
      ->required();
  AddRanges(command, options.get());
  command->add_option("--rail", options->plan.rail, "this rail only");
  command->add_option("--device", options->plan.device, "RDMA device of the only end on this node");
  command->add_flag("--both-ways", options->plan.both_ways, "each pair in both directions");
  command->add_option("--listen", options->listen, "answer tests of other nodes, at ADDRESS:PORT");
  command->add_option("--wait", options->wait, "with --listen: seconds without a test until it ends")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->add_option(
      "--key-file", options->key_file,
      "keys that both nodes have; a node without one gets no answer (docs/operate/rdma-test.md)");
  options->output.AddTo(command);
  help::Set(command, {.examples = {{"railctl rdma-test train/worker-0 train/worker-1",
                                    "two pods of this node, rail by rail"},
                                   {"railctl rdma-test --listen 0.0.0.0:18515 --device mlx5_0 host",
                                    "answer the tests of another node"}},
                      .columns = ColumnsOf<rdma_test::ReportedTest>(),
                      .statuses = {{kFailed, "a test failed, or was interrupted"}}});
  command->callback([options, &root, status] {
    *status = options->listen.empty() ? Test(root, *options) : Serve(root, *options);
  });
}

}  // namespace railhead::railctl
