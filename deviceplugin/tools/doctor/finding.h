// What a check finds: a status, what was seen, and what to do.
//
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railhead::doctor {

// In the order of severity.
enum class Status : std::uint8_t {
  kSkipped,  // a fact that it needs cannot be had
  kOk,
  kNote,     // worth knowing; nothing is wrong
  kWarning,  // works, but slower or less safely than it could
  kFailure,  // pods fail, or train over the wrong way
};

// "ok", "failure", ...
std::string_view NameOf(Status status);

struct Observation {
  Status status = Status::kSkipped;
  std::string text;  // "pf0: MTU 1500"
  std::string fix;   // what to do about it; "" where nothing is to be done
  bool operator==(const Observation&) const = default;
};

// What a check has to say of each thing that it looked at; the worst of them counts.
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

  // kSkipped when nothing was looked at.
  [[nodiscard]] Status status() const;
  // The observations that give it its status, a few of them; what was the same of several things is
  // said once.
  [[nodiscard]] std::string Found() const;
  // The first fix of these.
  [[nodiscard]] std::string Fix() const;
  [[nodiscard]] const std::vector<Observation>& observations() const { return observations_; }

 private:
  std::vector<Observation> observations_;
};

}  // namespace railhead::doctor
