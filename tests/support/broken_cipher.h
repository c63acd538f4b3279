// broken_cipher.h: ciphers that fail from some moment on, as a library's may.
//
// Threads: any. Errors: none.
#pragma once

namespace tcpx {

// While it lives no record is sealed by this process.
class BrokenCipher {
 public:
  BrokenCipher();
  ~BrokenCipher();
};

}  // namespace tcpx
