// Mutex and MutexLock: std::mutex with clang's annotations, so that the compiler refuses an access to guarded
// data without its lock (-Wthread-safety).
//
//   Mutex mutex_;
//   int value_ RH_GUARDED_BY(mutex_) = 0;
//
// A condition is a std::condition_variable_any, which takes a MutexLock. Its predicate is a function of its
// own: [this]() RH_REQUIRES(mutex_) { return value_ != 0; }. Source:
// clang.llvm.org/docs/ThreadSafetyAnalysis.html. Threads: thread-safe; a MutexLock is one thread's.
#pragma once

#include <mutex>

#if defined(__clang__)
#define RH_THREAD_ANNOTATION(annotation) __attribute__((annotation))
#else
#define RH_THREAD_ANNOTATION(annotation)
#endif
#define RH_GUARDED_BY(mutex) RH_THREAD_ANNOTATION(guarded_by(mutex))
#define RH_REQUIRES(mutex) RH_THREAD_ANNOTATION(requires_capability(mutex))

namespace railhead {

class RH_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() RH_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() RH_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class RH_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) RH_THREAD_ANNOTATION(acquire_capability(mutex)) : lock_(mutex) {}
  ~MutexLock() RH_THREAD_ANNOTATION(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // In between, for work that needs no lock.
  void lock() RH_THREAD_ANNOTATION(acquire_capability()) { lock_.lock(); }
  void unlock() RH_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }

 private:
  std::unique_lock<Mutex> lock_;
};

}  // namespace railhead
