// secret.h: the shared secret of TCPX_SECRET_FILE, and what is signed with it.
//
// Purpose: the only code that sees the secret's bytes. They are wiped from every place that they leave. Whether sockets
//          are encrypted goes with it, since that needs a secret.
// Threads: any; constant once loaded.
// Units:   bytes.
// Errors:  Load: kInvalidArgument, with the path and the command that makes a good one: where the file can't be read,
//          where others than its owner and group may read or write it, and where its secret can be guessed.
// Source:  HMAC-SHA256: RFC 2104, FIPS 180-4, from libsodium. Fewer than 16 bytes can be guessed offline by anyone who
//          has recorded a handshake (NIST SP 800-107 asks for 112 bits at the least).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "net_socket/message/wire.h"
#include "net_socket/seal/key_memory.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

using Mac = std::array<uint8_t, kMacBytes>;

class Secret {
 public:
  static constexpr size_t kBytesMin = 16;
  static constexpr size_t kBytesMax = 4096;

  // The file's content without a newline at its end.
  static absl::StatusOr<std::unique_ptr<Secret>> Load(const std::string& path);

  explicit Secret(absl::string_view bytes) : bytes_(bytes.size()), key_(bytes.size()) {
    std::memcpy(key_.data(), bytes.data(), bytes_);
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;

  // The MAC of the parts, one after the other.
  Mac Sign(std::initializer_list<absl::string_view> parts) const;
  // Where a key schedule begins (seal/key_schedule.h).
  Key32 Early() const { return Extract(Key32().view(), {reinterpret_cast<const char*>(key_.data()), bytes_}); }
  // With it every socket is encrypted; before the first one.
  void Encrypt(std::unique_ptr<const Encryption> encryption) { encryption_ = std::move(encryption); }
  // Null: sockets are not encrypted.
  const Encryption* encryption() const { return encryption_.get(); }
  // In a time that does not depend on the bytes. `mac` has kMacBytes.
  static bool Same(const Mac& expected, const char* mac);

 private:
  const size_t bytes_;
  const KeyPages key_;
  std::unique_ptr<const Encryption> encryption_;
};

}  // namespace tcpx
