// Result<T> and RH_TRY.
//
//   Result<Link> link = links.Get("eth0");
//   auto link = RH_TRY(links.Get("eth0"));              // returns the error
//   RH_TRY_WRAP(links.SetUp(link.index), "bringing up eth0");
//
// Threads: plain values. Nothing here throws.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "netns/base/error.h"

namespace railhead {

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
