#include "deviceplugin/services/health/probe.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "netns/base/files.h"
#include "netns/base/text.h"
#include "netns/sys/pci.h"
#include "netns/sys/pci_address.h"

namespace railhead::health {
namespace {

// The errors that drivers return while their device goes away, resets or does not have the counter.
bool IsPassing(const Error& error) {
  switch (error.sys_errno) {
    case EBUSY:
    case EINVAL:
    case EIO:
    case ENODEV:
    case ENXIO:
    case EOPNOTSUPP:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

Result<std::optional<std::string>> TryAttribute(const std::string& path) {
  auto text = ReadAttribute(path);
  if (!text && IsPassing(text.error())) return std::nullopt;
  return text;
}

Result<std::optional<std::uint64_t>> TryNumber(const std::string& path) {
  const auto text = RH_TRY(TryAttribute(path));
  if (!text) return std::nullopt;
  const auto value = ParseInt(*text);
  if (!value || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

// The reporters of a device with this driver. "DRIVER:NAME" is for devices of one driver.
std::vector<std::string> ReportersOf(const std::string& driver, const std::vector<std::string>& reporters) {
  std::vector<std::string> names;
  for (const std::string& reporter : reporters) {
    const auto colon = reporter.find(':');
    if (colon == std::string::npos) names.push_back(reporter);
    if (colon != std::string::npos && reporter.substr(0, colon) == driver)
      names.push_back(reporter.substr(colon + 1));
  }
  return names;
}

// nullopt: the network device is not there.
Result<std::optional<ObservedLink>> TryLink(const std::string& directory, const std::string& netdev) {
  constexpr std::uint64_t kUp = 1;  // IFF_UP
  ObservedLink link;
  link.netdev = netdev;
  auto carrier = ReadAttribute(directory + "/carrier");
  if (!carrier) {
    // EINVAL is how carrier_show (net/core/net-sysfs.c) says "administratively down".
    if (carrier.error().sys_errno == EINVAL) return link;
    if (IsPassing(carrier.error())) return std::nullopt;
    return Fail(std::move(carrier.error()));
  }
  if (!*carrier) return std::nullopt;
  link.carrier = **carrier == "1";
  link.admin_up = link.carrier;
  if (!link.carrier) {
    const auto flags = RH_TRY(TryAttribute(directory + "/flags"));
    const auto bits = flags && flags->size() > 2 ? ParseHex(flags->substr(2)) : std::nullopt;
    link.admin_up = (bits.value_or(kUp) & kUp) != 0;
  }
  return link;
}

// Returns `path` itself where it leads nowhere.
std::string WithoutLinks(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  return real ? real.get() : path;
}

// "TOTAL_ERR_FATAL 3" is one line of aer_dev_fatal.
std::optional<std::uint64_t> TotalOf(const std::string& text) {
  for (const std::string& line : Split(text, '\n')) {
    if (line.rfind("TOTAL_ERR", 0) != 0) continue;
    const auto value = ParseInt(line.substr(line.rfind(' ') + 1));
    if (value && *value >= 0) return static_cast<std::uint64_t>(*value);
  }
  return std::nullopt;
}

void Note(Result<void> done, const std::string& what, std::vector<Error>* problems) {
  if (!done) problems->push_back(Wrap(std::move(done.error()), what));
}

}  // namespace

std::string HealthProbe::PathOf(const std::string& id) const {
  // An id that is not a PCI address is a name of the auxiliary bus: a subfunction.
  return root_.Path(PciAddress::Parse(id) ? "/sys/bus/pci/devices/" : "/sys/bus/auxiliary/devices/") + id;
}

Result<void> HealthProbe::ReadPresence(const HealthSubject& subject, Observation* seen) {
  const std::string path = PathOf(subject.id);
  seen->bound = RH_TRY(::railhead::ReadLink(path + "/driver")).has_value();
  seen->present = seen->bound || Exists(path);
  return {};
}

Result<void> HealthProbe::FindNetdev(const HealthSubject& subject, Place* place) {
  place->netdev.clear();
  place->net_directory.clear();
  std::optional<std::string> name;
  const std::string path = PathOf(subject.id);
  if (const auto address = PciAddress::Parse(subject.id); address && !subject.is_vf) {
    name = RH_TRY(UplinkNetdev(root_, *address));
  } else if (const auto names = RH_TRY(ListDirectory(path + "/net")); names && !names->empty()) {
    name = names->front();
  }
  if (!name) return {};
  place->netdev = *name;
  place->net_directory = path + "/net/" + *name;
  // Of a virtio NIC, the network device is one directory level deeper.
  if (!Exists(place->net_directory)) place->net_directory = root_.Path("/sys/class/net/") + *name;
  place->net_directory = WithoutLinks(place->net_directory);
  return {};
}

Result<void> HealthProbe::ReadLinkAndPresence(const HealthSubject& subject, Observation* seen) {
  Place& place = places_[subject.id];
  if (!place.netdev.empty()) seen->link = RH_TRY(TryLink(place.net_directory, place.netdev));
  if (!seen->link) {
    RH_TRY(ReadPresence(subject, seen));
    if (!seen->bound) return {};
    RH_TRY(FindNetdev(subject, &place));
    if (place.netdev.empty()) return {};
    seen->link = RH_TRY(TryLink(place.net_directory, place.netdev));
  }
  if (seen->link && !subject.is_vf && seen->link->admin_up) {
    seen->link->operstate = RH_TRY(TryAttribute(place.net_directory + "/operstate")).value_or("");
  }
  return {};
}

Result<void> HealthProbe::FindPort(const HealthSubject& subject, Place* place) {
  const auto names = RH_TRY(ListDirectory(PathOf(subject.id) + "/infiniband"));
  place->ibdev = names && !names->empty() ? names->front() : "";
  if (!place->ibdev.empty())
    place->port_directory = WithoutLinks(root_.Path("/sys/class/infiniband/") + place->ibdev + "/ports/1");
  return {};
}

Result<void> HealthProbe::ReadPort(const HealthSubject& subject, Observation* seen) {
  // No rule judges the port of a VF that is down or not here.
  if (subject.is_vf && (!seen->link || !seen->link->admin_up)) return {};
  Place& place = places_[subject.id];
  for (const bool again : {false, true}) {
    if (again) RH_TRY(FindPort(subject, &place));
    if (place.ibdev.empty()) continue;
    const auto state = PortStateIn(place.port_directory);
    if (!state && !IsPassing(state.error())) return Fail(state.error());
    if (!state || !*state) continue;
    seen->port = ObservedPort{place.ibdev, **state};
    return {};
  }
  return {};
}

Result<void> HealthProbe::ReadAer(const std::string& id, const RuleSettings& settings, Observation* seen) {
  for (const CounterLimit& limit : settings.counters) {
    const auto text = RH_TRY(TryAttribute(PathOf(id) + "/" + limit.counter));
    const auto total = text ? TotalOf(*text) : std::nullopt;
    if (total) seen->counters.push_back({HealthRule::kAer, limit.counter, *total});
  }
  return {};
}

Result<void> HealthProbe::ReadPortCounters(const Place& place, const RuleSettings& settings,
                                           Observation* seen) {
  std::vector<std::string> directories;
  if (!place.ibdev.empty()) {
    directories = {place.port_directory + "/counters/", place.port_directory + "/hw_counters/"};
  }
  if (!place.net_directory.empty()) {
    directories.push_back(place.net_directory + "/");
    directories.push_back(place.net_directory + "/statistics/");
  }
  for (const CounterLimit& limit : settings.counters) {
    for (const std::string& directory : directories) {
      const auto value = RH_TRY(TryNumber(directory + limit.counter));
      if (!value) continue;
      seen->counters.push_back({HealthRule::kErrorRate, limit.counter, *value});
      break;
    }
  }
  return {};
}

Result<void> HealthProbe::ReadStatistics(const Place& place, const RuleSettings& settings,
                                         Observation* seen) {
  if (source_ == nullptr || place.netdev.empty()) return {};
  std::vector<std::string> names;
  names.reserve(settings.counters.size());
  for (const CounterLimit& limit : settings.counters) names.push_back(limit.counter);
  for (const auto& [name, value] : RH_TRY(source_->Statistics(place.netdev, names))) {
    seen->counters.push_back({HealthRule::kPauseStorm, name, value});
  }
  return {};
}

void HealthProbe::ReadCounters(const HealthSubject& subject, const HealthRules& rules, Observation* seen,
                               std::vector<Error>* problems) {
  const Place& place = places_[subject.id];
  const std::string of = " of " + subject.id;
  const auto& aer = rules.Of(HealthRule::kAer);
  if (aer.enabled) Note(ReadAer(subject.id, aer, seen), "reading PCIe error counters" + of, problems);
  const auto& rate = rules.Of(HealthRule::kErrorRate);
  if (rate.enabled) Note(ReadPortCounters(place, rate, seen), "reading port counters" + of, problems);
  const auto& storm = rules.Of(HealthRule::kPauseStorm);
  // The host cannot ask for a PF in a pod: its name may be another device's here.
  if (storm.enabled && seen->link) {
    Note(ReadStatistics(place, storm, seen), "reading ethtool statistics" + of, problems);
  }
}

void HealthProbe::ReadReporters(const HealthSubject& subject, const HealthRules& rules, Observation* seen,
                                std::vector<Error>* problems) {
  if (source_ == nullptr || !rules.Of(HealthRule::kDevlink).enabled || rules.reporters.empty()) return;
  const auto driver = ::railhead::ReadLink(PathOf(subject.id) + "/driver");
  const std::string name = driver && *driver ? std::filesystem::path(**driver).filename().string() : "";
  auto failed = source_->FailedReporters(subject.id, ReportersOf(name, rules.reporters));
  if (failed) {
    seen->failed_reporters = *std::move(failed);
  } else {
    problems->push_back(Wrap(std::move(failed.error()), "reading devlink health of " + subject.id));
  }
}

Result<Observation> HealthProbe::Read(const HealthSubject& subject, const HealthRules& rules, bool counters,
                                      std::vector<Error>* problems, std::vector<Error>* of_counters) {
  const auto on = [&](HealthRule rule) { return rules.Of(rule).enabled; };
  Observation seen;
  // Of a VF in a pod the host sees only that it exists.
  if (subject.is_vf && subject.in_use) {
    if (on(HealthRule::kGone) || on(HealthRule::kUnbound)) RH_TRY(ReadPresence(subject, &seen));
    return seen;
  }
  RH_TRY(ReadLinkAndPresence(subject, &seen));
  if (!seen.present || !seen.bound) return seen;
  // Counters need the RDMA device's name, which this looks up.
  if (on(HealthRule::kRdmaPort) || (counters && on(HealthRule::kErrorRate))) RH_TRY(ReadPort(subject, &seen));
  if (subject.is_vf) return seen;
  if (on(HealthRule::kVfCount)) {
    const auto count = RH_TRY(TryNumber(PathOf(subject.id) + "/sriov_numvfs"));
    if (count) seen.vf_count = static_cast<int>(std::min<std::uint64_t>(*count, UINT16_MAX));
  }
  ReadReporters(subject, rules, &seen, problems);
  if (counters) ReadCounters(subject, rules, &seen, of_counters);
  return seen;
}

void HealthProbe::KeepOnly(const std::set<std::string>& ids) {
  std::erase_if(places_, [&](const auto& place) { return !ids.contains(place.first); });
}

}  // namespace railhead::health
