#include "deviceplugin/tools/rdma_test/bytes.h"

#include "netns/gid/gid_table.h"

namespace railhead::rdmatest {
namespace {
constexpr std::size_t kGidBytes = 16;
}

void ByteWriter::PutGid(const IpAddress& gid) {
  const IpAddress whole = GidOf(gid);
  bytes_.append(reinterpret_cast<const char*>(whole.Data()), whole.Size());
}

std::string ByteReader::GetText(std::size_t max) {
  const auto size = Get<std::uint16_t>();
  if (size > max) short_ = true;
  return std::string(Take(size));
}

IpAddress ByteReader::GetGid() {
  const std::string_view bytes = Take(kGidBytes);
  return bytes.empty() ? IpAddress() : *IpAddress::FromBytes(bytes.data(), bytes.size());
}

}  // namespace railhead::rdmatest
