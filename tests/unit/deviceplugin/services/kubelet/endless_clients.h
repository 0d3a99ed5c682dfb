// Many connections at once that send as much as they are let, and never come to an end.
//
// Each is one that a server cannot tell from an honest, slow one by its first bytes: HTTP of header lines, a
// line of JSON, or HTTP/2 with many gRPC calls whose messages have been announced and are never complete, and
// which keeps to the windows that the server gives. One that is hung up on connects again.
// Threads: one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "netns/base/unique_fd.h"

namespace railhead::testing {

// What one connection sends: more whenever it may.
class Endless {
 public:
  Endless() = default;
  Endless(const Endless&) = delete;
  Endless& operator=(const Endless&) = delete;
  virtual ~Endless() = default;
  // `heard`: what the server has sent since.
  virtual void Hear(const std::string& heard) = 0;
  // The next bytes; "": it may not send now.
  virtual std::string Next() = 0;
};

// `first`, and then `piece` again and again.
std::unique_ptr<Endless> EndlessText(std::string first, std::string piece);
// gRPC calls of `method` ("/package.Service/Method"), as many at once as the server allows.
std::unique_ptr<Endless> EndlessCalls(std::string method);

struct Sent {
  std::size_t bytes = 0;
  std::size_t connections = 0;  // with those that came again
};

// `connect` gives a connected socket. Until `most` bytes are sent, or the server has let none of them send
// for a while. They stay open in `kept`.
Sent SendWithoutEnd(int clients, std::size_t most, const std::function<UniqueFd()>& connect,
                    const std::function<std::unique_ptr<Endless>()>& make, std::vector<UniqueFd>* kept);

}  // namespace railhead::testing
