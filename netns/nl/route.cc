#include "netns/nl/route.h"

namespace railhead {

std::string Route::ToString() const {
  std::string text = destination.length == 0 ? "default" : destination.ToString();
  if (gateway) text += " via " + gateway->ToString();
  if (source) text += " src " + source->ToString();
  if (link != 0) text += " dev " + std::to_string(link);
  if (table != kTableMain) text += " table " + std::to_string(table);
  if (metric != 0) text += " metric " + std::to_string(metric);
  return text;
}

std::string Rule::ToString() const {
  std::string text = std::to_string(priority) + ": from ";
  if (!from) {
    text += "all";
  } else {
    text += from->length == from->address.Bits() ? from->address.ToString() : from->ToString();
  }
  if (!iif.empty()) text += " iif " + iif;
  if (!oif.empty()) text += " oif " + oif;
  return text + " lookup " + std::to_string(table);
}

}  // namespace railhead
