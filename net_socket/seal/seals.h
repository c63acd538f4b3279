// seals.h: what a process needs to seal its sockets, and what one socket gets of it.
//
// Threads: Encryption: any, constant. Lifetime: a socket's half may outlive the Encryption that made it.
// Errors:  CheckSealed and CheckSealer: kInternal, which is a fault of this library's own, or a cipher's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "net_socket/seal/cipher_suites.h"
#include "net_socket/seal/key_schedule.h"
#include "net_socket/seal/opener.h"
#include "net_socket/seal/sealer.h"

namespace tcpx {

// The seals of one socket. Both null: nothing is sealed.
struct Seals {
  std::unique_ptr<Sealer> sealer;
  std::unique_ptr<Opener> opener;
};

inline constexpr char kNoKeys[] =
    "a socket has no keys although TCPX_ENCRYPT is on, and is not used: an error in libnccl-net-tcpx itself";

// To be called before a socket is used; if not OK, the socket must not be used. `must`: TCPX_ENCRYPT is on.
inline absl::Status CheckSealed(bool must, const Seals* seals) {
  if (!must || (seals != nullptr && seals->sealer != nullptr && seals->opener != nullptr)) return absl::OkStatus();
  return absl::InternalError(kNoKeys);
}

// Why nothing more can be sent on a socket, whatever it is; OK: it can.
inline absl::Status CheckSealer(bool must, const Sealer* sealer) {
  if (sealer == nullptr) return must ? absl::InternalError(kNoKeys) : absl::OkStatus();
  return sealer->broken() ? absl::InternalError(kCantSeal) : absl::OkStatus();
}

class Encryption {
 public:
  // `suites`: the best first.
  explicit Encryption(std::vector<CipherSuite> suites)
      : suites_(std::move(suites)), buffers_(std::make_shared<SealBuffers>()) {}

  // A bit for each.
  uint64_t offered() const {
    uint64_t bits = 0;
    for (const CipherSuite suite : suites_) bits |= Bit(suite);
    return bits;
  }
  static uint64_t Bit(CipherSuite suite) { return uint64_t{1} << static_cast<int>(suite); }
  // The best that is among `offered`. False: none.
  bool Choose(uint64_t offered, CipherSuite* suite) const {
    for (const CipherSuite own : suites_) {
      if ((offered & Bit(own)) == 0) continue;
      *suite = own;
      return true;
    }
    return false;
  }

  Seals Make(CipherSuite suite, const Key32& sends, const Key32& receives) const {
    return {std::make_unique<Sealer>(TrafficKeys{suite, sends}, buffers_),
            std::make_unique<Opener>(TrafficKeys{suite, receives}, buffers_)};
  }

 private:
  const std::vector<CipherSuite> suites_;
  const std::shared_ptr<SealBuffers> buffers_;
};

}  // namespace tcpx
