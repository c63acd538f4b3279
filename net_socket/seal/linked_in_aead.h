// linked_in_aead.h: the ChaCha20-Poly1305 that is linked in, so that no machine is without a cipher.
//
// Purpose: libsodium's, by far not the fastest: used where no library of the machine has one.
//
// Threads, lifetime, errors: as Aead.
#pragma once

#include <cstdint>
#include <memory>

#include "net_socket/seal/aead.h"

namespace tcpx {

// `key` has KeyBytes.
std::unique_ptr<Aead> MakeLinkedInAead(const uint8_t* key);

}  // namespace tcpx
