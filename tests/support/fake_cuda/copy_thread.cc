#include "tests/support/fake_cuda/copy_thread.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tcpx {
namespace {

constexpr uintptr_t kLine = 128;

// Copies the aligned words of 8 bytes at the end of each line of `to`, or all else, from the end to the beginning.
void CopyBackwards(char* to, const char* from, size_t bytes, bool ends_of_lines) {
  while (bytes > 0) {
    const uintptr_t end = reinterpret_cast<uintptr_t>(to + bytes);
    const size_t step = bytes >= 8 && end % 8 == 0 ? 8 : 1;
    bytes -= step;
    if ((step == 8 && end % kLine == 0) != ends_of_lines) continue;
    if (step == 8) {
      uint64_t word;
      std::memcpy(&word, from + bytes, sizeof(word));
      __atomic_store_n(reinterpret_cast<uint64_t*>(to + bytes), word, __ATOMIC_RELEASE);
    } else {
      to[bytes] = from[bytes];
    }
  }
}

// The worst order of a copy for a reader: the flags of LL128 first, and the data a while later.
void Copy(const FakeCopy& copy, char* view) {
  for (const bool ends_of_lines : {true, false}) {
    for (size_t row = copy.height; row-- > 0;) {
      char* const device = view + row * copy.pitch;
      char* const host = copy.host + row * copy.pitch;
      CopyBackwards(copy.to_device ? device : host, copy.to_device ? host : device, copy.width, ends_of_lines);
    }
    if (ends_of_lines) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace

CopyThread::~CopyThread() {
  {
    std::lock_guard<std::mutex> lock(*mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  for (FakeStream* left : streams_) delete left;  // A GPU that was stuck.
}

void CopyThread::Enqueue(FakeStream* stream, const FakeStream::Step& step) {
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  stream->steps.push_back(step);
  changed_.notify_all();
}

void CopyThread::Await(FakeStream* stream, std::unique_lock<std::mutex>* lock) {
  changed_.wait(*lock, [&] { return stream->steps.empty(); });
}

uint64_t CopyThread::waiting() const {
  uint64_t steps = 0;
  for (const FakeStream* stream : streams_) steps += stream->steps.size();
  return steps;
}

FakeStream* CopyThread::Choose() {
  if (held) return nullptr;
  std::vector<FakeStream*> ready;
  for (FakeStream* stream : streams_) {
    if (!stream->steps.empty()) ready.push_back(stream);
  }
  return ready.empty() ? nullptr : ready[random() % ready.size()];
}

void CopyThread::Run() {
  std::unique_lock<std::mutex> lock(*mutex_);
  while (!stop_) {
    FakeStream* const stream = Choose();
    if (stream == nullptr) {
      changed_.wait(lock);
    } else {
      CarryOut(stream, &lock);
    }
  }
}

void CopyThread::CarryOut(FakeStream* stream, std::unique_lock<std::mutex>* lock) {
  const FakeStream::Step step = stream->steps.front();
  if (step.event != nullptr) {
    step.event->reached = step.recorded;
  } else {
    const unsigned delay_us = delay_us_max == 0 ? 0 : static_cast<unsigned>(random() % delay_us_max);
    lock->unlock();
    if (delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
    lock->lock();
    CarryOutInMemory(step, lock);
  }
  stream->steps.pop_front();
  changed_.notify_all();
}

void CopyThread::CarryOutInMemory(const FakeStream::Step& step, std::unique_lock<std::mutex>* lock) {
  const bool is_word = step.word != 0;
  char* const view =
      is_word ? memory_->View(step.word, sizeof(uint64_t)) : memory_->View(step.copy.device, step.copy.span());
  if (view == nullptr) {
    std::fputs("fake_cuda: a copy touches device memory that was freed\n", stderr);
    std::abort();
  }
  if (is_word) {
    __atomic_store_n(reinterpret_cast<uint64_t*>(view), step.value, __ATOMIC_RELEASE);
    return;
  }
  lock->unlock();
  Copy(step.copy, view);
  lock->lock();
  ++copies;
  if (step.copy.height > 1) ++strided_copies;
}

}  // namespace tcpx
