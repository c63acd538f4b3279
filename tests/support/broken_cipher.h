// broken_cipher.h: ciphers that fail from some moment on, as a library's may.
//
// Threads: any. Errors: none.
#ifndef TCPX_TESTS_SUPPORT_BROKEN_CIPHER_H_
#define TCPX_TESTS_SUPPORT_BROKEN_CIPHER_H_

namespace tcpx {

// While it lives no record is sealed by this process.
class BrokenCipher {
 public:
  BrokenCipher();
  ~BrokenCipher();
};

}  // namespace tcpx

#endif  // TCPX_TESTS_SUPPORT_BROKEN_CIPHER_H_
