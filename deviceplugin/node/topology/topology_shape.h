// The fields of topology.json, one line each. docs/reference/fabric.md says what each is for.
//
// Included where the file is read, or its schema is made. Threads: pure descriptions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netns/json/record.h"
#include "netns/sys/accelerators.h"
#include "netns/sys/pci_address.h"
#include "netns/sys/pci_path.h"

namespace railhead::topology {

// A value that only this file has as a text.
template <typename T>
struct Text {
  T value{};
};

template <typename T>
std::optional<Text<T>> TextOf(const std::optional<T>& value) {
  return value ? std::optional(Text<T>{*value}) : std::nullopt;
}

struct PathFields {
  Text<PciAddress> nic;
  Text<PciAddress> accelerator;
  Text<PciPath> path;
};

// The file as it is written.
struct TopologyFields {
  std::vector<PathFields> paths;
  std::optional<std::vector<Text<AcceleratorKind>>> vendors;
  std::map<std::string, Text<PciAddress>> ids;
};

inline constexpr FieldRules kPciField{.need = Need::kRequired, .hint = "for example 0000:43:00.0"};

}  // namespace railhead::topology

template <>
struct railhead::TextForm<railhead::topology::Text<railhead::PciAddress>> {
  static constexpr const char* kWrong = "is not a PCI address";
  static std::string Write(const topology::Text<PciAddress>& address) { return address.value.ToString(); }
  static auto Read(std::string_view text) { return topology::TextOf(PciAddress::Parse(text)); }
};

template <>
struct railhead::TextForm<railhead::topology::Text<railhead::PciPath>> {
  static constexpr const char* kWrong = "is not a path class";
  static std::string Write(const topology::Text<PciPath>& path) { return std::string(NameOf(path.value)); }
  static auto Read(std::string_view text) { return topology::TextOf(ParsePciPath(text)); }
};

template <>
struct railhead::TextForm<railhead::topology::Text<railhead::AcceleratorKind>> {
  static constexpr const char* kWrong = "is not a PCI vendor";
  static auto Read(const std::string& text) { return topology::TextOf(AcceleratorKind::Parse(text)); }
};

template <>
struct railhead::Shape<railhead::topology::PathFields> {
  using T = topology::PathFields;
  static void List(auto& f) {
    f("nic", &T::nic, topology::kPciField);
    f("accelerator", &T::accelerator, topology::kPciField);
    f("path", &T::path, {.need = Need::kRequired, .hint = "PIX, PXB, PHB, NODE or SYS"});
  }
  static std::string Key(const T& path) {
    return path.nic.value.ToString() + " and " + path.accelerator.value.ToString();
  }
};

template <>
struct railhead::Shape<railhead::topology::TopologyFields> {
  using T = topology::TopologyFields;
  static void List(auto& f) {
    f("paths", &T::paths);
    f.Group("accelerators", [](auto& accelerators) {
      accelerators("vendors", &T::vendors,
                   {.hint = "four hexadecimal digits, perhaps with a class: 10de or 8086:0380"});
      accelerators("ids", &T::ids, {.hint = topology::kPciField.hint});
    });
  }
};
