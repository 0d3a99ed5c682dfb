// --rail: one rail of a report. All commands that list devices, rails, addresses or attachments have it.
//
//   options->rail.AddTo(command);
//   RH_TRY(options->rail.CheckAmong(names));      // there is such a rail
//   options->rail.Keep(&report.rails, &lldp::RailNeighbor::rail);
//
// Ownership: AddTo() has CLI11 write into this object, which outlives the parsing. Threads: one. Errors:
// kNotFound for a rail that is not there, with the names of those that are.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cni/fabric/fabric.h"
#include "netns/base/result.h"
#include "netns/base/root.h"

namespace railhead::railctl {

class RailFilter {
 public:
  CLI::Option* AddTo(CLI::App* command);

  [[nodiscard]] bool IsGiven() const { return !rail_.empty(); }
  // "": not given.
  [[nodiscard]] const std::string& rail() const { return rail_; }
  [[nodiscard]] bool Wants(const std::string& rail) const { return rail_.empty() || rail == rail_; }

  [[nodiscard]] Result<void> CheckAmong(const std::vector<std::string>& rails) const;
  // Removes what is of another rail. `rail_of`: a member, or a function.
  template <typename T, typename RailOf>
  void Keep(std::vector<T>* list, RailOf rail_of) const {
    std::erase_if(*list, [&](const T& one) { return !Wants(std::invoke(rail_of, one)); });
  }

 private:
  std::string rail_;
};

// The rails of this node's fabric.json, and what of the node belongs to them.
struct NodeRails {
  std::vector<Rail> rails;
  std::map<std::string, std::string> of_pf;  // rail name, by the PF's address

  [[nodiscard]] std::vector<std::string> Names() const;
  // "": of none.
  [[nodiscard]] std::string OfPf(const std::string& pf) const;
  [[nodiscard]] std::string OfAddress(const IpAddress& address) const;
};

// Empty without a fabric.json. Errors: those of fabric.json and of the inventory.
Result<NodeRails> ReadNodeRails(const Root& root);

// nullopt: the filter is not given. Errors also those of CheckAmong(), among the rails of fabric.json.
Result<std::optional<NodeRails>> RailsToFilterBy(const Root& root, const RailFilter& filter);

}  // namespace railhead::railctl
