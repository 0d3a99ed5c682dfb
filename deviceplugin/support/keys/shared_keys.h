// SharedKeys: secrets that the nodes of a cluster share, and what they sign.
//
// A file has one key a line, in hexadecimal digits, at least 16 bytes. The first one signs, and all verify.
// So keys change without a gap: add the new one as the second line everywhere, make it the first, remove the
// old one. A line `unsigned` says that messages without a signature are accepted, too: while keys are
// introduced. A `#` begins a comment. Signatures are HMAC-SHA256 (RFC 2104) by OpenSSL. Messages and logs
// never contain keys. Ownership: a value. Threads: const, so any. Errors: kInvalid with the line's number,
// never with its content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "netns/base/result.h"

namespace railhead {

// Below a node's root; in Kubernetes a Secret, which --probe-keys names.
inline constexpr const char* kProbeKeysPath = "/etc/railhead/probe-keys";

class SharedKeys {
 public:
  static constexpr std::size_t kSignature = 32;
  static constexpr std::size_t kShortest = 16;
  static constexpr std::size_t kMost = 8;
  using Signature = std::array<std::uint8_t, kSignature>;

  // `what` names the file in errors.
  static Result<SharedKeys> Parse(std::string_view text, const std::string& what);
  // nullopt: the file does not exist.
  static Result<std::optional<SharedKeys>> Read(const std::string& path);

  [[nodiscard]] Signature Sign(std::string_view message) const;
  // In a time that does not depend on the signature.
  [[nodiscard]] bool Verify(std::string_view message, std::span<const std::uint8_t> signature) const;
  [[nodiscard]] bool takes_unsigned() const { return takes_unsigned_; }

  bool operator==(const SharedKeys&) const = default;

 private:
  using Key = std::vector<std::uint8_t>;
  SharedKeys(std::vector<Key> keys, bool takes_unsigned)
      : keys_(std::move(keys)), takes_unsigned_(takes_unsigned) {}

  std::vector<Key> keys_;  // never empty
  bool takes_unsigned_ = false;
};

}  // namespace railhead
