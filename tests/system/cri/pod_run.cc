#include "tests/system/cri/pod_run.h"

#include <thread>
#include <utility>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead::testing {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenLooks(100);

// The unmet conditions. A runtime that does not answer counts as one, since it may be starting.
Result<std::vector<std::string>> StillMissing(CriClient* client, const std::vector<std::string>& images,
                                              bool host_network) {
  auto missing = client->Missing();
  if (!missing) {
    const ErrorCode code = missing.error().code;
    if (code != ErrorCode::kIo && code != ErrorCode::kTimeout) return missing;
    return std::vector<std::string>{missing.error().message};
  }
  // As kubelet does: it starts such pods without the network.
  if (host_network)
    std::erase_if(*missing, [](const std::string& why) { return why.starts_with("NetworkReady"); });
  for (const std::string& image : images) {
    if (!RH_TRY(client->HasImage(image))) missing->push_back("image " + image);
  }
  return missing;
}

Result<ContainerView> WaitForEnd(CriClient* client, const std::string& id, std::chrono::milliseconds limit) {
  const auto end = Clock::now() + limit;
  while (true) {
    auto view = RH_TRY(client->ContainerStatus(id));
    if (view.state == ContainerView::State::kExited) return view;
    if (Clock::now() >= end) {
      return Fail(ErrorCode::kTimeout,
                  "container " + id + " has not ended within " +
                      std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + " s");
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Result<void> RemoveWithLog(CriClient* client, const std::string& id) {
  const auto view = client->ContainerStatus(id);
  RH_TRY(client->RemoveContainer(id));  // kills it, should it still run
  if (view && !view->log_path.empty()) RH_TRY(RemoveFile(view->log_path));
  return {};
}

Result<Finished> ToItsEnd(CriClient* client, const std::string& id, std::chrono::milliseconds limit) {
  RH_TRY(client->StartContainer(id));
  const auto view = RH_TRY(WaitForEnd(client, id, limit));
  Finished finished{view.exit_code, view.reason, {}};
  if (!view.message.empty()) finished.reason += ": " + view.message;
  finished.output = RH_TRY(ReadOutput(client, id));
  return finished;
}

}  // namespace

Result<void> WaitReady(CriClient* client, const std::vector<std::string>& images,
                       std::chrono::milliseconds limit, bool host_network) {
  const auto end = Clock::now() + limit;
  while (true) {
    const std::vector<std::string> missing = RH_TRY(StillMissing(client, images, host_network));
    if (missing.empty()) return {};
    if (Clock::now() >= end) {
      return Fail(ErrorCode::kTimeout, "waiting for the runtime: still missing: " + Join(missing, "; "),
                  "see the runtime's log");
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

Result<Finished> RunContainer(CriClient* client, const std::string& sandbox, const PodSpec& pod,
                              const ContainerSpec& container, std::chrono::milliseconds limit) {
  const std::string id = RH_TRY(client->CreateContainer(sandbox, pod, container));
  auto finished = ToItsEnd(client, id, limit);
  if (const auto removed = RemoveWithLog(client, id); finished && !removed) return Fail(removed.error());
  return finished;
}

Result<std::string> StartContainer(CriClient* client, const std::string& sandbox, const PodSpec& pod,
                                   const ContainerSpec& container) {
  std::string id = RH_TRY(client->CreateContainer(sandbox, pod, container));
  if (auto started = client->StartContainer(id); !started) {
    (void)RemoveWithLog(client, id);  // report the first error
    return Fail(std::move(started.error()));
  }
  return id;
}

Result<ContainerOutput> ReadOutput(CriClient* client, const std::string& container) {
  const auto view = RH_TRY(client->ContainerStatus(container));
  const auto log = RH_TRY(ReadFile(view.log_path));
  if (!log) {
    return Fail(ErrorCode::kNotFound, "container " + container + " has no log at '" + view.log_path + "'",
                "the pod's log directory has to be an absolute path");
  }
  return ParseContainerLog(*log);
}

Result<void> RemovePod(CriClient* client, const std::string& sandbox) {
  RH_TRY(client->StopPodSandbox(sandbox));
  return client->RemovePodSandbox(sandbox);
}

}  // namespace railhead::testing
