// Errors as values.
//
// An Error says what was attempted, on what, why it failed and, where we know,
// what to do about it. `code` is for programs (it becomes a CNI error code, a
// gRPC status or an exit status in exactly one place per binary), `message` and
// `hint` are for people: no trailing period, no newline.
// Absence that a caller may expect is a value (std::optional), not an error.
// Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace railhead {

enum class ErrorCode : std::uint8_t {
  kMalformed,    // text that cannot be parsed at all
  kInvalid,      // what the caller gave is wrong or contradictory; nothing was touched
  kNamespace,    // the network namespace given is gone or is none
  kNotFound,     // what was named does not exist
  kExists,       // what was to be made exists already
  kBusy,         // in use by someone else; may work later
  kUnsupported,  // the kernel, driver or runtime cannot do it
  kPermission,   // EPERM, EACCES
  kExhausted,    // no address, VF, space left
  kTimeout,      // waited as long as configured
  kIo,           // file system or socket failure
  kConflict,     // two sources of truth disagree
  kInternal,     // a bug of ours
  kUnavailable,  // the service as a whole cannot be used now (CNI STATUS)
  kLimited,      // the same, and what is in use already may be impaired too
};

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;
  std::string hint;   // what to do; may be empty
  int sys_errno = 0;  // errno when the kernel refused, else 0
};

// "opening /x: No such file or directory"; the code follows from errno.
Error SysError(int sys_errno, std::string_view what);

// The same error with "what: " before its message.
Error Wrap(Error error, std::string_view what);

// errno as a code: ENOENT, ENODEV -> kNotFound, EEXIST -> kExists, ...
ErrorCode CodeOfErrno(int sys_errno);

// "not-found", "busy", ...: stable names for logs and machine-readable output.
std::string_view NameOf(ErrorCode code);

// message, and "; hint" when there is one.
std::string Describe(const Error& error);

}  // namespace railhead
