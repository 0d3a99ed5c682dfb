#include "deviceplugin/support/http/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>

namespace railhead::http {
namespace {

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

unsigned char* Bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());  // NOLINT(*-reinterpret-cast): OpenSSL's bytes
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());  // NOLINT(*-reinterpret-cast)
}

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  // OpenSSL ends it with a NUL.
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(Bytes(text), Bytes(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string letters(text);
  letters.erase(std::remove_if(letters.begin(), letters.end(), IsBlank), letters.end());
  // OpenSSL takes padding anywhere for zeros, and counts its bytes.
  const std::size_t data = std::min(letters.find('='), letters.size());
  const std::size_t padding = letters.size() - data;
  if (letters.size() % 4 != 0 || padding > 2 || letters.find_first_not_of('=', data) != std::string::npos)
    return std::nullopt;
  std::string bytes(letters.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(Bytes(bytes), Bytes(std::string_view{letters}), static_cast<int>(letters.size()));
  if (size < 0) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

}  // namespace railhead::http
