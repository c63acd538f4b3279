// fuzz.h: what the fuzz targets share.
//
// Purpose: Require ends the process where a property does not hold, so that libFuzzer keeps the input and the replay of
//          the corpus fails; Input hands out the bytes of one input.
// Threads: one at a time. Lifetime: Input borrows the bytes.
// Errors:  an input that is used up gives zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace tcpx {

inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t bytes) : data_(data), bytes_(bytes) {}

  bool empty() const { return bytes_ == 0; }
  // The next sizeof(T) bytes, little endian.
  template <typename T>
  T Take() {
    T value{};
    const size_t step = std::min(sizeof(T), bytes_);
    if (step > 0) std::memcpy(&value, data_, step);
    Skip(step);
    return value;
  }
  // The next `bytes`, or as many as are left.
  std::string TakeBytes(size_t bytes) {
    const size_t step = std::min(bytes, bytes_);
    std::string taken(reinterpret_cast<const char*>(data_), step);
    Skip(step);
    return taken;
  }

 private:
  void Skip(size_t bytes) {
    data_ += bytes;
    bytes_ -= bytes;
  }

  const uint8_t* data_;
  size_t bytes_;
};

}  // namespace tcpx
