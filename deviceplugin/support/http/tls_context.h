// TlsSettings as OpenSSL has them. Only for connection.cc. Threads: pure functions. Errors: kInvalid with the
// name of a file that is not PEM of its kind.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "deviceplugin/support/http/connection.h"
#include "netns/base/result.h"

namespace railhead::http {

struct TlsFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* session) const { SSL_free(session); }
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsFree>;
using TlsSession = std::unique_ptr<SSL, TlsFree>;

Result<TlsContext> MakeTlsContext(const TlsSettings& settings);
// Over `fd`, for a server called `name` (or with that address).
Result<TlsSession> MakeTlsSession(const TlsContext& context, int fd, const std::string& name);

// Why this thread's last call failed, as far as OpenSSL knows. Empties OpenSSL's queue.
std::string TakeTlsError();
// The same, and says which side does not trust the other.
Error TlsFailure(const SSL* session, const std::string& what);

}  // namespace railhead::http
