#include "cni/state/resource_variable.h"

#include <cctype>

namespace railhead {

std::string PcideviceVariable(const std::string& resource) {
  std::string name = "PCIDEVICE_";
  for (const char c : resource) {
    name += c == '.' || c == '/' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace railhead
