// Who is measured: something that attaches a device to a pod and detaches it.
// Threads: one object, one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/process.h"
#include "bench/setting.h"
#include "netns/base/result.h"

namespace railhead::bench {

inline constexpr const char* kTrue = "/bin/true";
inline constexpr const char* kIpam = "railhead-ipam";
inline constexpr const char* kHostLocal = "host-local";
inline constexpr const char* kBare = "bare kernel";
inline constexpr const char* kRailhead = "railhead";
inline constexpr const char* kHostDevice = "host-device chain";

class Contender {
 public:
  Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;
  virtual ~Contender() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  // The device that is in the pod after Add(); nullptr: it has none.
  [[nodiscard]] virtual const Device* device() const = 0;
  // The namespace of its own that stands for its pods.
  [[nodiscard]] virtual std::string netns() const = 0;

  // `id` names the pod; each ADD gets a new one.
  virtual Result<std::vector<Part>> Add(const std::string& id) = 0;
  virtual Result<std::vector<Part>> Del(const std::string& id) = 0;
  // What the last Add() says the pod has: "10.100.0.10/24"; empty: nothing.
  [[nodiscard]] virtual std::string Address() const = 0;

  // Runs every process under this command; {}: as it is.
  virtual void SetPrefix(std::vector<std::string> prefix) = 0;
};

// In the order in which they are measured: those that the setting has devices and
// programs for. Their namespaces are /run/netns/bench-0, bench-1, ...
std::vector<std::unique_ptr<Contender>> MakeContenders(const Setting& setting);

}  // namespace railhead::bench
