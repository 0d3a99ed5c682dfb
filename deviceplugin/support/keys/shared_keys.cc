#include "deviceplugin/support/keys/shared_keys.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <utility>

#include "netns/base/files.h"
#include "netns/base/text.h"

namespace railhead {
namespace {

constexpr std::string_view kUnsigned = "unsigned";
constexpr std::string_view kBlank = " \t\r";

std::string_view Stripped(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const auto begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

std::optional<std::uint8_t> DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<std::vector<std::uint8_t>> BytesOfHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto high = DigitOf(text[i]);
    const auto low = DigitOf(text[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes.push_back(static_cast<std::uint8_t>(*high << 4U | *low));
  }
  return bytes;
}

SharedKeys::Signature SignWith(const std::vector<std::uint8_t>& key, std::string_view message) {
  SharedKeys::Signature signature{};
  unsigned int size = 0;
  (void)::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
               reinterpret_cast<const unsigned char*>(message.data()), message.size(), signature.data(),
               &size);
  return signature;
}

}  // namespace

Result<SharedKeys> SharedKeys::Parse(std::string_view text, const std::string& what) {
  const std::string hint =
      "one key a line, 32 hexadecimal digits or more: openssl rand -hex 32; `unsigned` to take messages "
      "without";
  std::vector<Key> keys;
  bool takes_unsigned = false;
  int number = 0;
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    const std::string_view word = Stripped(line);
    if (word.empty()) continue;
    if (word == kUnsigned) {
      takes_unsigned = true;
      continue;
    }
    auto key = BytesOfHex(word);
    if (!key || key->size() < kShortest)
      return Fail(ErrorCode::kInvalid, what + ": line " + std::to_string(number) + " is not a key", hint);
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return Fail(ErrorCode::kInvalid, what + ": no key in it", hint);
  if (keys.size() > kMost) {
    return Fail(ErrorCode::kInvalid, what + ": more than " + std::to_string(kMost) + " keys",
                "remove the keys with which no node signs");
  }
  return SharedKeys(std::move(keys), takes_unsigned);
}

Result<std::optional<SharedKeys>> SharedKeys::Read(const std::string& path) {
  const auto text = RH_TRY(ReadRootFile(path));
  if (!text) return std::nullopt;
  return RH_TRY(Parse(*text, path));
}

SharedKeys::Signature SharedKeys::Sign(std::string_view message) const {
  return SignWith(keys_.front(), message);
}

bool SharedKeys::Verify(std::string_view message, std::span<const std::uint8_t> signature) const {
  if (signature.size() != kSignature) return false;
  bool good = false;
  for (const Key& key : keys_) {
    const Signature own = SignWith(key, message);
    good = ::CRYPTO_memcmp(own.data(), signature.data(), kSignature) == 0 || good;
  }
  return good;
}

}  // namespace railhead
