#include "deviceplugin/tools/install/removal.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "netns/base/text.h"
#include "netns/json/json_reader.h"

namespace railhead::install {
namespace {

constexpr const char* kPods = "/api/v1/pods?limit=";
constexpr int kMostPodsOfAPage = 500;
constexpr std::string_view kOwnPrefix = "railhead.io/";
// A pod of a training job has about 10 KB, managedFields included, and none has more than etcd takes: 1.5
// MiB.
constexpr std::size_t kMostBytesOfAPage = std::size_t{32} << 20;
constexpr int kMostLists = 3;

bool IsOurs(const std::string& resource, const std::vector<std::string>& resources) {
  return resource.starts_with(kOwnPrefix) || Contains(resources, resource);
}

// Adds what the containers below `key` may use of Railhead's resources.
void AddLimits(JsonReader& spec, const char* key, const std::vector<std::string>& resources,
               std::set<std::string>* found) {
  for (JsonReader& container : spec.Objects(key)) {
    auto requirements = container.Object("resources");
    auto limits = requirements ? requirements->Object("limits") : std::nullopt;
    if (!limits) continue;
    for (const std::string& resource : limits->Keys()) {
      if (IsOurs(resource, resources) && limits->String(resource).value_or("0") != "0")
        found->insert(resource);
    }
  }
}

std::optional<PodWithNics> ReadPod(JsonReader& pod, const std::vector<std::string>& resources) {
  auto metadata = pod.Object("metadata");
  auto spec = pod.Object("spec");
  auto state = pod.Object("status");
  if (!metadata || !spec) return std::nullopt;
  const std::string node = spec->String("nodeName").value_or("");
  const std::string phase = state ? state->String("phase").value_or("") : "";
  if (node.empty() || phase == "Succeeded" || phase == "Failed") return std::nullopt;
  std::set<std::string> found;
  AddLimits(*spec, "containers", resources, &found);
  AddLimits(*spec, "initContainers", resources, &found);
  if (found.empty()) return std::nullopt;
  return PodWithNics{metadata->RequiredString("namespace"),
                     metadata->RequiredString("name"),
                     node,
                     {found.begin(), found.end()}};
}

// Adds the pods of one page, and returns where the next one begins; "": this was the last one.
Result<std::string> ReadPage(const JsonDocument& page, const std::vector<std::string>& resources,
                             std::vector<PodWithNics>* pods) {
  JsonReader list = page.Root();
  if (list.String("kind") != "PodList") list.Fail("kind", "is not PodList");
  for (JsonReader& pod : list.Objects("items")) {
    if (auto with_nics = ReadPod(pod, resources)) pods->push_back(std::move(*with_nics));
  }
  auto metadata = list.Object("metadata");
  std::string next = metadata ? metadata->String("continue").value_or("") : "";
  if (auto status = list.status(); !status) {
    status.error().code = ErrorCode::kMalformed;
    return Fail(std::move(status.error()));
  }
  return next;
}

// nullopt: the list has expired.
Result<std::optional<RemovalReport>> ListPods(KubeApi& api, const std::vector<std::string>& resources) {
  RemovalReport report;
  std::string next;
  int pods_of_a_page = kMostPodsOfAPage;
  for (;;) {
    std::string target = kPods + std::to_string(pods_of_a_page);
    if (!next.empty()) target += "&continue=" + EscapeForQuery(next);
    const auto answer = api.Call("GET", target);
    if (!answer && answer.error().sys_errno == EMSGSIZE && pods_of_a_page > 1) {
      pods_of_a_page = std::max(1, pods_of_a_page / 8);
      continue;
    }
    if (!answer) return Fail(answer.error());
    if (answer->status == KubeAnswer::Status::kExpired) return std::nullopt;
    next = RH_TRY(ReadPage(answer->document, resources, &report.pods));
    if (next.empty()) return report;
  }
}

}  // namespace

KubeApi PodsApi(const KubeAccess& access, std::chrono::milliseconds timeout) {
  return {access, timeout, {"manifests/helm/railhead", "railhead-removal-check"}, kMostBytesOfAPage};
}

Result<RemovalReport> CheckRemoval(KubeApi& api, const std::vector<std::string>& resources) {
  for (int lists = 0; lists < kMostLists; ++lists) {
    if (auto report = RH_TRY_WRAP(ListPods(api, resources), "listing the pods of all namespaces"))
      return std::move(*report);
  }
  return Fail(ErrorCode::kUnavailable,
              "listing the pods of all namespaces: the list expired before its last page, " +
                  std::to_string(kMostLists) + " times",
              "try again when the API server has less to do");
}

std::string RemovalAsText(const RemovalReport& report) {
  if (report.Ok()) return "No pod has NICs of Railhead.\n";
  std::string text = "Pods have NICs of Railhead. Delete them first, then run helm uninstall again.\n";
  for (const PodWithNics& pod : report.pods)
    text += pod.name_space + "/" + pod.name + " on " + pod.node + ": " + Join(pod.resources, ", ") + "\n";
  return text;
}

}  // namespace railhead::install
