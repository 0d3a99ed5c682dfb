// The result of a check: a status, the observations, and what to do.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "netns/base/result.h"
#include "netns/json/record.h"

namespace railhead::doctor {

// In the order of severity.
enum class Status : std::uint8_t {
  kSkipped,  // a fact that it needs cannot be read
  kOk,
  kNote,     // worth knowing; not a fault
  kWarning,  // works, but slower or less safely than it could
  kFailure,  // pods fail, or train over the wrong network
};

struct Observation {
  Status status = Status::kSkipped;
  std::string text;  // "pf0: MTU 1500"
  std::string fix;   // what to do about it; "": nothing
  bool operator==(const Observation&) const = default;

  static void List(auto& f) {
    f("status", &Observation::status);
    f("text", &Observation::text);
    f("fix", &Observation::fix, kSparseField);
  }
};

// The observations of a check, one for each thing that it examined. The worst one counts.
class Verdict {
 public:
  Verdict& Add(Status status, std::string text, std::string fix = {});
  Verdict& Ok(std::string text) { return Add(Status::kOk, std::move(text)); }
  Verdict& Note(std::string text, std::string fix = {}) {
    return Add(Status::kNote, std::move(text), std::move(fix));
  }
  Verdict& Warn(std::string text, std::string fix) {
    return Add(Status::kWarning, std::move(text), std::move(fix));
  }
  Verdict& Fail(std::string text, std::string fix) {
    return Add(Status::kFailure, std::move(text), std::move(fix));
  }
  Verdict& Skip(std::string reason) { return Add(Status::kSkipped, std::move(reason)); }

  // kSkipped without any observation.
  [[nodiscard]] Status status() const;
  // The observations that decide its status, a few of them. Equal observations of several things are
  // combined.
  [[nodiscard]] std::string Found() const;
  // The first fix of those observations.
  [[nodiscard]] std::string Fix() const;
  [[nodiscard]] const std::vector<Observation>& observations() const { return observations_; }

  static void List(auto& f) {
    f.Output("status", &Verdict::status);
    f.Output("found", &Verdict::Found);
    f.Output("fix", &Verdict::Fix, kSparseField);
    f.Output("observations", &Verdict::observations);
  }

 private:
  std::vector<Observation> observations_;
};

}  // namespace railhead::doctor

template <>
struct railhead::Names<railhead::doctor::Status> {
  using Status = doctor::Status;
  static constexpr std::array kAll = {
      std::pair{"skipped", Status::kSkipped}, std::pair{"ok", Status::kOk}, std::pair{"note", Status::kNote},
      std::pair{"warning", Status::kWarning}, std::pair{"failure", Status::kFailure}};
};
