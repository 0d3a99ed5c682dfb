#include "tests/support/kubernetes/certificates.h"

#include <stdexcept>

#include "tests/support/process.h"

namespace railhead::testing {

Certificates::Certificates() {
  const ProcessOutput made =
      RunProcess({MAKE_CERTIFICATES, root_.directory()}, {{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"}}, "");
  if (made.status != 0) throw std::runtime_error("make_certificates.sh: " + made.err);
}

}  // namespace railhead::testing
