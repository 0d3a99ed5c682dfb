#include "deviceplugin/leaves/report_list.h"

#include <sstream>

#include "cni/skel/json_objects.h"

namespace railhead {

Result<std::vector<LeafReport>> ParseLeafReports(std::string_view text, const std::string& what) {
  std::istringstream in{std::string(text)};
  JsonObjects objects(in, what, kMaxLeafReport);
  std::vector<LeafReport> reports;
  while (true) {
    const std::string object = RH_TRY(objects.Next());
    if (object.empty()) return reports;
    const bool alone = reports.empty() && in.peek() == std::istringstream::traits_type::eof();
    reports.push_back(RH_TRY(ParseLeafReport(object, alone ? what : objects.NameOfLast())));
  }
}

}  // namespace railhead
