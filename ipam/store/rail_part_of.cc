#include "ipam/store/rail_part_of.h"

#include "ipam/store/range.h"
#include "ipam/store/store.h"

namespace railhead::ipam {

Result<RailPart> RailPartOf(const std::string& rail, const RangeSpec& spec,
                            std::chrono::seconds reuse_delay) {
  const auto part = RH_TRY(RangeSet::Make(spec));
  return RailPart{rail, part.intervals(), reuse_delay};
}

}  // namespace railhead::ipam
