#include "netns/ns/sysctl.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "netns/base/text.h"
#include "netns/base/unique_fd.h"

namespace railhead {
namespace {

std::string FileName(const std::string& path) {
  std::string name = path;
  for (char& c : name) {
    if (c == '/') {
      c = '.';
    } else if (c == '.') {
      c = '/';
    }
  }
  return name;
}

Result<void> CheckPath(const std::string& path) {
  const std::vector<std::string> parts = Split(path, '/');
  const bool plain = std::ranges::none_of(parts, [](const std::string& part) {
    return part.empty() || part == "." || part == ".." || part.find('\0') != std::string::npos;
  });
  if (plain && parts.size() > 1 && parts.front() == "net") return {};
  return Fail(ErrorCode::kInvalid, "sysctl path \"" + path + "\" does not belong to a network namespace",
              "paths are as below /proc/sys and start with net/, for example net/ipv4/conf/eth0/arp_ignore");
}

// The error for an errno of open, read or write on a sysctl's file.
Error SysctlError(int sys_errno, const std::string& what) {
  Error error = SysError(sys_errno, what);
  if (sys_errno == ENOENT || sys_errno == ENOTDIR) {
    error.code = ErrorCode::kNotFound;
    error.hint = "this kernel has no such sysctl, or the namespace has no such interface";
  } else if (sys_errno == EISDIR) {
    error.code = ErrorCode::kInvalid;
    error.hint = "it is a group of sysctls";
  } else if (sys_errno == EINVAL || sys_errno == ERANGE) {
    error.code = ErrorCode::kInvalid;
    error.hint = "the kernel refuses this value";
  } else if (sys_errno == EACCES || sys_errno == EPERM) {
    error.hint = "it is read-only or write-only, or CAP_NET_ADMIN is missing";
  } else if (sys_errno == EROFS) {
    error.hint = "/proc/sys is mounted read-only";
  }
  return error;
}

// Descriptors in order; an invalid one for a sysctl that does not exist.
Result<std::vector<UniqueFd>> OpenAll(const NetNs& ns, const std::vector<std::string>& paths, int flags,
                                      std::string_view doing) {
  std::vector<UniqueFd> files;
  for (const std::string& path : paths) RH_TRY_WRAP(CheckPath(path), std::string(doing) + " a sysctl");
  const auto open_all = [&]() -> Result<void> {
    for (const std::string& path : paths) {
      UniqueFd fd(open(("/proc/sys/" + path).c_str(), flags | O_CLOEXEC));
      const bool absent = !fd.valid() && (errno == ENOENT || errno == ENOTDIR);
      if (!fd.valid() && (!absent || flags == O_WRONLY)) {
        return Fail(SysctlError(errno, std::string(doing) + " sysctl " + FileName(path)));
      }
      files.push_back(std::move(fd));
    }
    return {};
  };
  RH_TRY(OpenSocketsIn(ns, open_all));
  return files;
}

Result<std::string> ReadWhole(int fd, const std::string& what) {
  std::string value;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t size = read(fd, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Fail(SysctlError(errno, what));
    if (size == 0) break;
    value.append(buffer.data(), static_cast<std::size_t>(size));
  }
  if (!value.empty() && value.back() == '\n') value.pop_back();
  return value;
}

}  // namespace

Result<std::vector<std::optional<std::string>>> ReadSysctls(const NetNs& ns,
                                                            const std::vector<std::string>& paths) {
  std::vector<std::optional<std::string>> values;
  if (paths.empty()) return values;
  const std::vector<UniqueFd> files = RH_TRY(OpenAll(ns, paths, O_RDONLY, "reading"));
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!files[i].valid()) {
      values.emplace_back();
      continue;
    }
    values.emplace_back(RH_TRY(ReadWhole(files[i].get(), "reading sysctl " + FileName(paths[i]))));
  }
  return values;
}

Result<void> WriteSysctls(const NetNs& ns, const std::vector<Sysctl>& values) {
  if (values.empty()) return {};
  std::vector<std::string> paths;
  paths.reserve(values.size());
  for (const auto& [path, value] : values) paths.push_back(path);
  const std::vector<UniqueFd> files = RH_TRY(OpenAll(ns, paths, O_WRONLY, "setting"));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [path, value] = values[i];
    const std::string what = "setting sysctl " + FileName(path) + " to \"" + value + "\"";
    // One write: the kernel takes each write as a whole value. A write of no bytes would succeed and change
    // nothing.
    if (value.empty()) return Fail(SysctlError(EINVAL, what));
    ssize_t written = 0;
    do {
      written = write(files[i].get(), value.data(), value.size());
    } while (written < 0 && errno == EINTR);
    if (written < 0) return Fail(SysctlError(errno, what));
  }
  return {};
}

}  // namespace railhead
