// Errors as values: Error, Result<T> and RH_TRY.
//
//   Result<Link> link = links.Get("eth0");
//   auto link = RH_TRY(links.Get("eth0"));              // returns the error
//   RH_TRY_WRAP(links.SetUp(link.index), "bringing up eth0");
//
// An Error says what was attempted, on what, why it failed and, where we know, what to do. The field `code`
// is for programs. It becomes a CNI error code, a gRPC status or an exit status in exactly one place per
// binary. The fields `message` and `hint` are for people: no trailing period, no newline.
// Absence that a caller may expect is a value (std::optional), not an error.
// Threads: plain values. Nothing here throws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace railhead {

enum class ErrorCode : std::uint8_t {
  kMalformed,    // text that cannot be parsed at all
  kInvalid,      // what the caller gave is wrong or contradictory; nothing was touched
  kNamespace,    // the given network namespace is gone or invalid
  kNotFound,     // the named object does not exist
  kExists,       // the object to be made exists already
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

template <typename T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> Fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}
inline tl::unexpected<Error> Fail(ErrorCode code, std::string message, std::string hint = {}) {
  return Fail(Error{code, std::move(message), std::move(hint), 0});
}
inline tl::unexpected<Error> FailSys(int sys_errno, std::string_view what) {
  return Fail(SysError(sys_errno, what));
}

// The same result, with "what: " before the message of an error.
template <typename T>
Result<T> WithContext(Result<T> result, std::string_view what) {
  if (!result) return Fail(Wrap(std::move(result.error()), what));
  return result;
}

namespace internal {
template <typename T>
T TakeValue(Result<T>&& result) {
  return std::move(*result);
}
inline void TakeValue(Result<void>&&) {}
}  // namespace internal

}  // namespace railhead

// The value of a Result, or return its error from the enclosing function.
// (A GNU statement expression: g++ and clang have it.)
#define RH_TRY(expr)                                                       \
  __extension__({                                                          \
    auto rh_result = (expr);                                               \
    if (!rh_result) return ::railhead::Fail(std::move(rh_result.error())); \
    ::railhead::internal::TakeValue(std::move(rh_result));                 \
  })

// The same, with context before the error's message.
#define RH_TRY_WRAP(expr, what)                                                                      \
  __extension__({                                                                                    \
    auto rh_result = (expr);                                                                         \
    if (!rh_result) return ::railhead::Fail(::railhead::Wrap(std::move(rh_result.error()), (what))); \
    ::railhead::internal::TakeValue(std::move(rh_result));                                           \
  })
