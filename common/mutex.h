// mutex.h: std::mutex, with annotations that let clang check what it guards.
//
// Purpose: a member says which mutex guards it (TCPX_GUARDED_BY), and a function which one its caller must hold
//          (TCPX_REQUIRES); a build with clang refuses code that does not (--config=thread_safety). Other compilers see
//          nothing of it. absl::Mutex would do the same, but leaves a thread key when the library is unloaded.
// Threads: any. Lifetime: outlives all that hold it or wait. Errors: none.
#pragma once

#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define TCPX_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define TCPX_THREAD_ANNOTATION(x)
#endif

// On a member: it, or what it points to, is touched only while the mutex is held.
#define TCPX_GUARDED_BY(mutex) TCPX_THREAD_ANNOTATION(guarded_by(mutex))
#define TCPX_PT_GUARDED_BY(mutex) TCPX_THREAD_ANNOTATION(pt_guarded_by(mutex))
// On a function: its caller holds the mutexes.
#define TCPX_REQUIRES(...) TCPX_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
// On a function that the analysis can't follow: a comment there says why.
#define TCPX_NO_THREAD_SAFETY_ANALYSIS TCPX_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace tcpx {

class TCPX_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() TCPX_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() TCPX_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  bool try_lock() TCPX_THREAD_ANNOTATION(try_acquire_capability(true)) { return mutex_.try_lock(); }

 private:
  friend class CondVar;

  std::mutex mutex_;
};

// Holds a mutex to the end of its scope. With std::adopt_lock: one that a try_lock has got.
class TCPX_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TCPX_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  MutexLock(Mutex& mutex, std::adopt_lock_t) TCPX_REQUIRES(mutex) : mutex_(mutex) {}
  ~MutexLock() TCPX_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  // Gives the mutex up while it waits. May return for no reason: ask again, in a loop (a lambda is not analysed as part
  // of its function).
  void Wait(Mutex& mutex) TCPX_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace tcpx
