#include "bench/nccl_bench/watchdog.h"

#include <stdio.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "common/clock.h"

namespace tcpx {
namespace nccl_bench {

Watchdog::Watchdog(std::string name, int timeout_s)
    : name_(std::move(name)), timeout_s_(timeout_s), progress_ns_(MonotonicNanos()), thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::Enter(std::string place) {
  std::lock_guard<std::mutex> lock(mutex_);
  place_ = std::move(place);
  progress_ns_ = MonotonicNanos();
}

void Watchdog::Tick() {
  std::lock_guard<std::mutex> lock(mutex_);
  progress_ns_ = MonotonicNanos();
}

std::string Watchdog::place() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return place_;
}

void Watchdog::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    const int64_t left_ns = progress_ns_ + timeout_s_ * kSecond - MonotonicNanos();
    if (left_ns <= 0) {
      fprintf(stderr, "%s: no progress for %d s, in: %s\n", name_.c_str(), timeout_s_, place_.c_str());
      fflush(nullptr);
      _exit(1);
    }
    wake_.wait_for(lock, std::chrono::nanoseconds(left_ns));
  }
}

}  // namespace nccl_bench
}  // namespace tcpx
