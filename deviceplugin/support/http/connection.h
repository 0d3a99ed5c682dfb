// One TCP connection to a server, with TLS or without. No operation takes longer than its deadline.
//
// TLS 1.2 or later. The server's certificate must be signed by the given authorities, never by the machine's
// own list. It must be for the requested name or address. Keys and certificates are read again for each
// connection, so that renewed ones are used. The machine's OpenSSL configuration is not read: the library is
// linked in. The process must ignore SIGPIPE, as railheadd does.
//
// Threads: one at a time. Errors: kTimeout; kUnavailable (refused, closed, reset). A server or client that
// did not prove its identity gives kPermission. A file that is not PEM of its kind gives kInvalid.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "deviceplugin/support/http/name_lookup.h"
#include "netns/base/result.h"

namespace railhead::http {

// PEM in a file or as text; without both: none.
struct Pem {
  std::string file;
  std::string text;
  [[nodiscard]] bool empty() const { return file.empty() && text.empty(); }
};

struct TlsSettings {
  Pem authorities;
  Pem certificate;  // the client's, with its chain
  Pem key;
  std::string server_name;  // instead of the endpoint's host
};

struct HttpEndpoint {
  bool tls = false;
  std::string host;  // name or address, without brackets; or the path of a Unix socket
  std::string port;
  std::string path;  // before every target; "" or "/..." without a '/' at its end

  [[nodiscard]] std::string Authority() const;  // for the Host header
  [[nodiscard]] std::string ToString() const;   // https://host:port/path
};

// "https://api0:6443", "http://[::1]:8001/api". Errors: kInvalid.
Result<HttpEndpoint> ParseHttpEndpoint(const std::string& url);

class Connection {
 public:
  static Result<std::unique_ptr<Connection>> Open(const HttpEndpoint& endpoint, const TlsSettings& tls,
                                                  Deadline deadline);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  Result<void> Write(std::string_view bytes, Deadline deadline);
  // How many bytes; 0: the server has closed it.
  Result<std::size_t> Read(char* buffer, std::size_t size, Deadline deadline);
  // Whether the server has sent nothing, and not closed, since the last Read.
  [[nodiscard]] bool IsIdle() const;

 private:
  struct State;
  explicit Connection(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace railhead::http
