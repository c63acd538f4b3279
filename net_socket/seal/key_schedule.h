// key_schedule.h: from a shared secret and an ephemeral exchange to the keys of one socket.
//
// Purpose: the key schedule of TLS 1.3 with SHA-256 in its mode psk_dhe_ke, with labels of our own (docs/security.md
//          has it in full). The acceptor, which speaks first here, has the part of TLS's client.
//
//   early     = HKDF-Extract(0, secret)
//   handshake = HKDF-Extract(Derive(early, "derived", ""), X25519)
//   master    = HKDF-Extract(Derive(handshake, "derived", ""), 0)
// Threads: one at a time. Pure.
// Lifetime: everything secret is wiped when it goes.
// Errors:  Agree.
// Source:  RFC 8446, 7.1 to 7.3; RFC 5869 (HKDF); RFC 7748 (X25519); from libsodium: HMAC, SHA-256, X25519.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "net_socket/seal/key_memory.h"

namespace tcpx {

// 32 secret bytes, zeros at first, in memory for keys (key_memory.h). A copy is wiped like the first.
class Key32 {
 public:
  Key32() : bytes_(TakeKeySlot()) {}
  Key32(const Key32& other) : Key32() { *this = other; }
  Key32& operator=(const Key32& other);
  ~Key32() { FreeKeySlot(bytes_); }

  uint8_t* data() { return bytes_; }
  const uint8_t* data() const { return bytes_; }
  static constexpr size_t size() { return 32; }
  absl::string_view view() const { return {reinterpret_cast<const char*>(bytes_), size()}; }

 private:
  uint8_t* const bytes_;
};

// HKDF-Expand-Label with our prefix; `bytes` at most 32.
void ExpandLabel(const Key32& secret, absl::string_view label, absl::string_view context, uint8_t* out, size_t bytes);

// HKDF-Extract.
Key32 Extract(absl::string_view salt, absl::string_view input);

using Digest = std::array<uint8_t, 32>;
Digest Sha256(absl::string_view bytes);

// An ephemeral key of X25519: made of 32 random bytes, used once.
class EphemeralKey {
 public:
  // `random`: 32 bytes.
  explicit EphemeralKey(const Key32& random);

  const std::array<uint8_t, 32>& public_key() const { return public_; }
  // False: the peer's key is none (the result would not depend on ours).
  bool Agree(const char* peer, Key32* shared) const;

 private:
  const Key32 private_;
  std::array<uint8_t, 32> public_;
};

// The end that says something, or that sent a record.
enum class Side { kAcceptor, kDialler };

class KeySchedule {
 public:
  // `early`: of the secret. `hellos`: all that both have said up to the second public key.
  KeySchedule(const Key32& early, const Key32& shared, absl::string_view hellos);

  // What proves that `side` has the secret and said, and heard, `transcript`.
  Digest Finished(Side side, absl::string_view transcript) const;
  // The secret for the records that `side` sends. `transcript`: up to the dialler's proof.
  Key32 TrafficSecret(Side side, absl::string_view transcript) const;

 private:
  Key32 finished_[2];
  Key32 master_;
};

}  // namespace tcpx
