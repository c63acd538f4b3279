// copy_thread.h: the copy engine of fake_cuda: one thread that carries out what streams were given, each in its order.
//
// Threads: all calls under the fake's mutex, which the thread shares; a copy itself runs without it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/support/fake_cuda/device_memory.h"

namespace tcpx {

struct FakeEvent {
  uint64_t recorded = 0;  // how often
  uint64_t reached = 0;   // the newest that was carried out
  bool done() const { return reached == recorded; }
};

struct FakeCopy {
  bool to_device = false;
  uint64_t device = 0;
  char* host = nullptr;
  size_t pitch = 0;  // of both sides
  size_t width = 0;
  size_t height = 1;

  size_t span() const { return height == 0 ? 0 : pitch * (height - 1) + width; }
};

struct FakeStream {
  struct Step {
    FakeCopy copy;  // where there is no event and no word
    FakeEvent* event = nullptr;
    uint64_t recorded = 0;
    uint64_t word = 0;  // of device memory, to be written
    uint64_t value = 0;
  };
  std::deque<Step> steps;  // the first stays until it was carried out
};

class CopyThread {
 public:
  CopyThread(std::mutex* mutex, const DeviceMemory* memory) : mutex_(mutex), memory_(memory) {}
  ~CopyThread();

  void Add(FakeStream* stream) { streams_.insert(stream); }
  void Remove(FakeStream* stream) { streams_.erase(stream); }
  void Enqueue(FakeStream* stream, const FakeStream::Step& step);
  void Await(FakeStream* stream, std::unique_lock<std::mutex>* lock);
  void Wake() { changed_.notify_all(); }

  bool held = false;
  unsigned delay_us_max = 0;
  std::mt19937_64 random{1};
  uint64_t copies = 0;
  uint64_t strided_copies = 0;
  uint64_t streams() const { return streams_.size(); }
  uint64_t waiting() const;

 private:
  void Run();
  FakeStream* Choose();
  void CarryOut(FakeStream* stream, std::unique_lock<std::mutex>* lock);
  void CarryOutInMemory(const FakeStream::Step& step, std::unique_lock<std::mutex>* lock);

  std::mutex* const mutex_;
  const DeviceMemory* const memory_;
  std::condition_variable changed_;
  std::set<FakeStream*> streams_;
  bool stop_ = false;
  std::thread thread_;  // started with the first step
};

}  // namespace tcpx
