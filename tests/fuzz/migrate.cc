// What `railctl migrate` reads: NetworkAttachmentDefinitions and the device plugin's configuration, as JSON
// or YAML, as people and kubectl write them; and what it makes of them. The first byte says which options.
#include <nlohmann/json.hpp>
#include <set>

#include "cni/fabric/fabric.h"
#include "deviceplugin/tools/migrate/migration.h"
#include "deviceplugin/tools/migrate/migration_report.h"
#include "netns/json/record_io.h"
#include "tests/fuzz/fuzz.h"

namespace railhead::fuzz {
namespace {

void CheckOutcome(const migrate::Outcome& outcome) {
  std::set<std::string> names;
  for (const migrate::OutputFile& file : outcome.files) {
    Require(IsSafeName(file.name), "a file lies in the directory that was asked for");
    Require(names.insert(file.name).second, "no file is written over another one");
    if (!file.name.ends_with(".json")) continue;
    Require(nlohmann::json::accept(file.content), "what is named JSON is JSON");
    if (file.name == "fabric.json")
      Require(ParseFabric(file.content, "it").has_value(), "railhead reads its fabric.json");
  }
  Require(!migrate::ReportAsMarkdown(outcome.report).empty(), "there is a report");
  (void)record::Dump(ToJson(outcome.report));
}

}  // namespace
}  // namespace railhead::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace railhead;
  if (size == 0) return 0;
  migrate::Documents documents;
  const auto added = migrate::AddDocuments(fuzz::TextOf(data + 1, size - 1), "input", &documents);
  if (!added) {
    fuzz::Require(!added.error().message.empty(), "a refusal says why");
    return 0;
  }
  for (const migrate::NetworkDefinition& network : documents.networks)
    fuzz::Require(fuzz::IsSafeName(network.name), "a network's name can be part of a file's");
  migrate::Options options;
  options.resource_prefix = "intel.com";
  options.nodes = (data[0] & 1U) != 0 ? 100 : 0;
  if ((data[0] & 2U) != 0) options.node = "node-1";
  if (const auto outcome = migrate::Migrate(documents, options)) fuzz::CheckOutcome(*outcome);
  return 0;
}
