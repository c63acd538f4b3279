#include "net_socket/seal/record.h"

#include <sodium/utils.h>

namespace tcpx {

RecordKeys::~RecordKeys() { sodium_memzero(iv_.data(), iv_.size()); }

void RecordKeys::Derive() {
  Key32 key;
  ExpandLabel(keys_.secret, "key", "", key.data(), KeyBytes(keys_.suite));
  ExpandLabel(keys_.secret, "iv", "", iv_.data(), iv_.size());
  aead_ = MakeAead(keys_.suite, key.data());
  number_ = 0;
}

Aead* RecordKeys::Next(AeadNonce* nonce) {
  if (number_ == keys_.records_per_key) {
    Key32 next;
    ExpandLabel(keys_.secret, "traffic upd", "", next.data(), Key32::size());
    keys_.secret = next;
    aead_ = nullptr;
  }
  if (aead_ == nullptr) Derive();
  *nonce = iv_;
  for (size_t i = 0; i < sizeof(number_); ++i) {
    (*nonce)[kAeadNonceBytes - 1 - i] ^= static_cast<uint8_t>(number_ >> (8 * i));
  }
  ++number_;
  return aead_.get();
}

}  // namespace tcpx
