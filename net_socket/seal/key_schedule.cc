#include "net_socket/seal/key_schedule.h"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_hash_sha256.h>
#include <sodium/crypto_scalarmult_curve25519.h>
#include <sodium/utils.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

constexpr absl::string_view kPrefix = "tcpx1 ";

// Above what X25519 takes of the stack, where it leaves digits of the private key, and the secret.
constexpr size_t kStackBytes = 4096;

const unsigned char* Bytes(absl::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

Key32 Hmac(absl::string_view key, absl::string_view message) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, Bytes(key), key.size());
  crypto_auth_hmacsha256_update(&state, Bytes(message), message.size());
  Key32 mac;
  crypto_auth_hmacsha256_final(&state, mac.data());
  sodium_memzero(&state, sizeof(state));
  return mac;
}

absl::string_view View(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

Key32 Derive(const Key32& secret, absl::string_view label, absl::string_view transcript) {
  Key32 derived;
  ExpandLabel(secret, label, View(Sha256(transcript)), derived.data(), Key32::size());
  return derived;
}

}  // namespace

static_assert(Key32::size() <= kKeySlotBytes);

Key32& Key32::operator=(const Key32& other) {
  std::memmove(bytes_, other.bytes_, size());
  return *this;
}

void ExpandLabel(const Key32& secret, absl::string_view label, absl::string_view context, uint8_t* out, size_t bytes) {
  const std::string info =
      absl::StrCat(absl::string_view("\0", 1), std::string(1, static_cast<char>(bytes)),
                   std::string(1, static_cast<char>(kPrefix.size() + label.size())), kPrefix, label,
                   std::string(1, static_cast<char>(context.size())), context, absl::string_view("\1", 1));
  const Key32 block = Hmac(secret.view(), info);
  std::memcpy(out, block.data(), std::min(bytes, Key32::size()));
}

Key32 Extract(absl::string_view salt, absl::string_view input) { return Hmac(salt, input); }

Digest Sha256(absl::string_view bytes) {
  Digest digest;
  crypto_hash_sha256(digest.data(), Bytes(bytes), bytes.size());
  return digest;
}

EphemeralKey::EphemeralKey(const Key32& random) : private_(random) {
  crypto_scalarmult_curve25519_base(public_.data(), private_.data());
  sodium_stackzero(kStackBytes);
}

bool EphemeralKey::Agree(const char* peer, Key32* shared) const {
  const auto* const theirs = reinterpret_cast<const unsigned char*>(peer);
  const bool agreed = crypto_scalarmult_curve25519(shared->data(), private_.data(), theirs) == 0;
  sodium_stackzero(kStackBytes);
  return agreed;
}

KeySchedule::KeySchedule(const Key32& early, const Key32& shared, absl::string_view hellos) {
  const Key32 handshake = Extract(Derive(early, "derived", "").view(), shared.view());
  const Key32 acceptor = Derive(handshake, "c hs traffic", hellos);
  const Key32 dialler = Derive(handshake, "s hs traffic", hellos);
  ExpandLabel(acceptor, "finished", "", finished_[0].data(), Key32::size());
  ExpandLabel(dialler, "finished", "", finished_[1].data(), Key32::size());
  master_ = Extract(Derive(handshake, "derived", "").view(), Key32().view());
}

Digest KeySchedule::Finished(Side side, absl::string_view transcript) const {
  const Key32 mac = Hmac(finished_[side == Side::kAcceptor ? 0 : 1].view(), View(Sha256(transcript)));
  Digest digest;
  std::memcpy(digest.data(), mac.data(), digest.size());
  return digest;
}

Key32 KeySchedule::TrafficSecret(Side side, absl::string_view transcript) const {
  return Derive(master_, side == Side::kAcceptor ? "c ap traffic" : "s ap traffic", transcript);
}

}  // namespace tcpx
