// New certificates for TLS tests: see make_certificates.sh.
#pragma once

#include <string>

#include "tests/support/temp_root.h"

namespace railhead::testing {

class Certificates {
 public:
  Certificates();
  [[nodiscard]] const std::string& directory() const { return root_.directory(); }
  [[nodiscard]] std::string Path(const std::string& file) const { return root_.directory() + "/" + file; }

 private:
  TempRoot root_;
};

}  // namespace railhead::testing
