// Reports of many nodes, as `railctl ranks` gets them.
#include <nlohmann/json.hpp>
#include <set>

#include "deviceplugin/leaves/ranks.h"
#include "deviceplugin/leaves/report_list.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using railhead::fuzz::Require;
  const auto reports = railhead::ParseLeafReports(railhead::fuzz::TextOf(data, size), "input");
  if (!reports) {
    Require(!reports.error().message.empty(), "a refusal says why");
    return 0;
  }
  std::string again;
  std::vector<railhead::RankedHost> hosts;
  for (const railhead::LeafReport& report : *reports) {
    again += railhead::LeafReportAsJson(report).dump();
    hosts.push_back(railhead::RankedHostOf(report));
  }
  const auto read = railhead::ParseLeafReports(again, "input");
  Require(read && read->size() == reports->size(), "what was read is read again");
  for (std::size_t i = 0; i < reports->size(); ++i)
    Require(SaysTheSame((*read)[i], (*reports)[i]), "and says the same");
  const auto ordered = railhead::OrderRanks(hosts);
  Require(ordered.size() == hosts.size(), "nobody is lost");
  Require(railhead::SumOf(CountCrossed(ordered)) <= railhead::SumOf(CountCrossed(hosts)),
          "an order is never worse");
  return 0;
}
