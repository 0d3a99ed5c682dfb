// Whether a process listens on a socket. The listener sees a connection that ends at once.
// Threads: pure function over the file system.
#pragma once

#include <string>

namespace railhead::kubelet {

// connect(2)'s errno: 0 when a process listens, ECONNREFUSED when the listener has ended.
int ProbeSocket(const std::string& path);

}  // namespace railhead::kubelet
