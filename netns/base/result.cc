#include "netns/base/result.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace railhead {

ErrorCode CodeOfErrno(int sys_errno) {
  switch (sys_errno) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
    case ESRCH:
    case EADDRNOTAVAIL:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kExists;
    case EBUSY:
    case EAGAIN:
    case ETXTBSY:
      return ErrorCode::kBusy;
    case EOPNOTSUPP:
    case EPROTONOSUPPORT:
    case EAFNOSUPPORT:
    case ENOSYS:
      return ErrorCode::kUnsupported;
    case EPERM:
    case EACCES:
    case EROFS:
      return ErrorCode::kPermission;
    case ENOSPC:
    case EDQUOT:
    case ENFILE:
    case EMFILE:
    case ENOMEM:
      return ErrorCode::kExhausted;
    case ETIMEDOUT:
      return ErrorCode::kTimeout;
    case EINVAL:
    case ERANGE:
    case ENAMETOOLONG:
      return ErrorCode::kInvalid;
    default:
      return ErrorCode::kIo;
  }
}

Error SysError(int sys_errno, std::string_view what) {
  Error error;
  error.code = CodeOfErrno(sys_errno);
  error.message.assign(what).append(": ").append(
      ::strerrordesc_np(sys_errno) != nullptr ? ::strerrordesc_np(sys_errno) : "unknown error");
  error.sys_errno = sys_errno;
  return error;
}

Error Wrap(Error error, std::string_view what) {
  error.message.insert(0, ": ").insert(0, what);
  return error;
}

std::string_view NameOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMalformed:
      return "malformed";
    case ErrorCode::kNamespace:
      return "namespace";
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kNotFound:
      return "not-found";
    case ErrorCode::kExists:
      return "exists";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kPermission:
      return "permission";
    case ErrorCode::kExhausted:
      return "exhausted";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kUnavailable:
      return "unavailable";
    case ErrorCode::kLimited:
      return "limited";
  }
  return "internal";
}

std::string Describe(const Error& error) {
  return error.hint.empty() ? error.message : error.message + "; " + error.hint;
}

}  // namespace railhead
